import { type Html, html } from "./html.ts";

type Cell<Row> = (row: Row) => Html | string;
/** The columns of a table: heading → the content of a row's cell. */
export type Columns<Row> = Record<string, Cell<Row>>;

/**
 * Renders a table; on narrow screens each row becomes a list of headings and values. Only screen readers get the
 * heading of the last column, with the `actions` of each row.
 */
export function table<Row>(
  caption: string,
  columns: Columns<Row>,
  rows: readonly Row[],
  actions?: Cell<Row>,
): Html {
  const cells = Object.entries(actions ? { ...columns, Actions: actions } : columns);
  return html`<table>
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${Object.keys(columns).map((head) => html`<th scope="col">${head}</th>`)}${
    actions && html`<th scope="col"><span class="visually-hidden">Actions</span></th>`
  }</tr></thead>
<tbody>${rows.map(
    (row) =>
      html`<tr>${cells.map(([head, cell]) => html`<td data-head="${head}"><div class="cell">${cell(row)}</div></td>`)}</tr>
`,
  )}</tbody>
</table>`;
}

/** Renders what a page shows while it has no content: what belongs here and how to start. */
export function emptyState(title: string, text: Html | string, action: Html = html``): Html {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p>${action}</div>`;
}

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
    cursor && html`<a class="button quiet" href="${pathWith({})}">First page</a>`
  }${nextCursor && html`<a class="button quiet" href="${pathWith({ cursor: nextCursor })}">Next page</a>`}</nav>`;
}
