import { type Html, html } from "./html.ts";

/** A table column: its heading, and how to render the cell of a row. */
export type Column<Row> = { head: string; cell: (row: Row) => Html | string };

/** Renders a table; on narrow screens each row becomes a list of headings and values. */
export function table<Row>(caption: string, columns: Column<Row>[], rows: Row[]): Html {
  return html`<table>
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${columns.map(({ head }) => html`<th scope="col">${heading(head)}</th>`)}</tr></thead>
<tbody>${rows.map(
    (row) =>
      html`<tr>${columns.map(({ head, cell }) => html`<td data-head="${head}"><div class="cell">${cell(row)}</div></td>`)}</tr>
`,
  )}</tbody>
</table>`;
}

/** Shows the heading of an action column to screen readers only. */
function heading(head: string): Html {
  return head === "Actions" ? html`<span class="visually-hidden">${head}</span>` : html`${head}`;
}

/** Renders what a page shows while it has no content: what belongs here and how to start. */
export function emptyState(title: string, text: Html | string, action: Html = html``): Html {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p>${action}</div>`;
}

/** Renders links to the next and the first page of a list; `query` is the list's filter. */
export function pagination(
  path: string,
  query: Record<string, string | undefined>,
  nextCursor: string | null | undefined,
): Html {
  const { cursor, ...filter } = query;
  const pathWith = (page: Record<string, string>) => {
    const search = new URLSearchParams(page);
    for (const [name, value] of Object.entries(filter)) if (value) search.set(name, value);
    return search.size > 0 ? `${path}?${search}` : path;
  };
  if (!cursor && !nextCursor) return html``;
  return html`<nav class="pages" aria-label="Pages">${
    cursor ? html`<a class="button quiet" href="${pathWith({})}">First page</a>` : html``
  }${nextCursor ? html`<a class="button quiet" href="${pathWith({ cursor: nextCursor })}">Next page</a>` : html``}</nav>`;
}
