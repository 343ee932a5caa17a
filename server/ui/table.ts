import { type Html, html } from "../html.ts";

/** A column: its heading, and what it shows of a row. */
export type Column<Row> = { head: string; cell: (row: Row) => Html | string };

/** A table; on a narrow screen each row is a list of headings and values. */
export function table<Row>(caption: string, columns: Column<Row>[], rows: Row[]): Html {
  return html`<table>
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${columns.map(({ head }) => html`<th scope="col">${hideable(head)}</th>`)}</tr></thead>
<tbody>${rows.map(
    (row) =>
      html`<tr>${columns.map(({ head, cell }) => html`<td data-head="${head}"><div class="cell">${cell(row)}</div></td>`)}</tr>
`,
  )}</tbody>
</table>`;
}

/** The heading of buttons is for those who cannot see what they are. */
function hideable(head: string): Html {
  return head === "Actions" ? html`<span class="visually-hidden">${head}</span>` : html`${head}`;
}

/** What a page shows when there is nothing yet: what would be here, and how to begin. */
export function emptyState(title: string, text: Html | string, action: Html = html``): Html {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p>${action}</div>`;
}

/** The way to the next page of a list, and back to the first; `query` is what the list is filtered by. */
export function pagination(
  path: string,
  query: Record<string, string | undefined>,
  nextCursor: string | null | undefined,
): Html {
  const { cursor, ...filter } = query;
  const address = (more: Record<string, string>) => {
    const search = new URLSearchParams(more);
    for (const [name, value] of Object.entries(filter)) if (value) search.set(name, value);
    return search.size > 0 ? `${path}?${search}` : path;
  };
  if (!cursor && !nextCursor) return html``;
  return html`<nav class="pages" aria-label="Pages">${
    cursor ? html`<a class="button quiet" href="${address({})}">First page</a>` : html``
  }${nextCursor ? html`<a class="button quiet" href="${address({ cursor: nextCursor })}">Next page</a>` : html``}</nav>`;
}
