import { icon, linkButton } from "./controls.ts";
import { type Html, html } from "./html.ts";

type Cell<Row> = (row: Row) => Html | string;
type Column<Row> = Cell<Row> | { number: (row: Row) => number };
/** The columns of a table: heading → the content of a row's cell, or its number, which is aligned to the end. */
export type Columns<Row> = Record<string, Column<Row>>;

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
  const cells = Object.entries<Column<Row>>(actions ? { ...columns, Actions: actions } : columns);
  const end = (column: Column<Row>) => typeof column !== "function" && html` class="end"`;
  return html`<table>
<caption class="visually-hidden">${caption}</caption>
<thead><tr>${Object.entries(columns).map(([head, column]) => html`<th scope="col"${end(column)}>${head}</th>`)}${
    actions && html`<th scope="col"><span class="visually-hidden">Actions</span></th>`
  }</tr></thead>
<tbody>${rows.map(
    (row) =>
      html`<tr>${cells.map(([head, column]) => html`<td data-head="${head}"${end(column)}><div class="cell">${contentOf(column, row)}</div></td>`)}</tr>
`,
  )}</tbody>
</table>`;
}

function contentOf<Row>(column: Column<Row>, row: Row): Html | string {
  return typeof column === "function" ? column(row) : column.number(row).toLocaleString("en");
}

/** Renders what a page shows while it has no content: what belongs here and how to start. */
export function emptyState(title: string, text: Html | string, action: Html = html``): Html {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p>${action}</div>`;
}

/** Renders what a page shows that has no content without a paid plan. */
export function paidPlanState(title: string, text: string, planPath: string): Html {
  return emptyState(title, text, linkButton(planPath, "Compare plans"));
}

type TabLink = {
  href: string;
  name: Html | string;
  isCurrent: boolean;
  /** Whether the tab only says why it can't be used. */
  isUnavailable?: boolean;
};

/** Renders links to the views of a page, of which one is shown. */
export function tabs(label: string, links: TabLink[]): Html {
  return html`<nav class="tabs" aria-label="${label}"><ul>
${links.map(
  ({ href, name, isCurrent, isUnavailable }) =>
    html`<li><a href="${href}"${isCurrent && html` aria-current="page"`}${isUnavailable && html` class="soft"`}>${name}</a></li>
`,
)}</ul></nav>`;
}

type Paging = {
  path: string;
  query: Record<string, string | undefined>;
  previousCursor?: string | null | undefined;
  nextCursor: string | null | undefined;
};

/** Renders the way to the other pages of a list; `summary` says what is shown. */
export function pagination({ path, query, previousCursor, nextCursor }: Paging, summary = html``): Html {
  const { cursor, done: _, undo: __, ...filter } = query;
  const hrefOf = (page: Record<string, string>) => pathWith(path, { ...filter, ...page });
  if (!cursor && !nextCursor && !summary.toString()) return html``;
  return html`<nav class="pages" aria-label="Pages">${summary}${
    cursor && !previousCursor && html`<a class="button quiet" href="${hrefOf({})}">First page</a>`
  }${
    previousCursor &&
    html`<a class="button quiet" rel="prev" href="${hrefOf({ cursor: previousCursor })}">${icon("chevron-left")}Previous</a>`
  }${
    nextCursor &&
    html`<a class="button quiet" rel="next" href="${hrefOf({ cursor: nextCursor })}">Next${icon("chevron-right")}</a>`
  }</nav>`;
}

/** Returns a path with the parameters that have a value. */
export function pathWith(path: string, query: Record<string, string | undefined>): string {
  const set = Object.entries(query).filter(([, value]) => value) as [string, string][];
  return set.length > 0 ? `${path}?${new URLSearchParams(set)}` : path;
}
