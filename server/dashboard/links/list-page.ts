import { CHANGED_MAX } from "../../../resources/links/change-many.ts";
import type { LinkPage } from "../../../resources/links/list.ts";
import type { LinkCount } from "../../../resources/links/matches.ts";
import { hasReachedLimit } from "../../../resources/links/service.ts";
import type { Link } from "../../../resources/links/types.ts";
import { badge, CSRF_FIELD, copyIcon, day, icon, initial, linkButton, meter, pluralize } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, pagination, pathWith } from "../../ui/table.ts";

type Query = Record<string, string | undefined>;

type LinksPage = LinkPage & {
  path: string;
  query: Query;
  errors: Partial<Record<string, string>>;
  /** How many links match the filter. */
  count: LinkCount;
  /** When the links were read, in epoch milliseconds. */
  shownAt: number;
  /** Tags to choose from. */
  tags: string[];
  shortUrl: string;
};

// The page of a link shows all of its tags.
const MAX_TAGS_IN_LIST = 2;

/** Returns the list of links, and the form for a new one, which stands beside the heading. */
export function linksPage(page: LinksPage): { actions: Html; body: Html } {
  const { path, query, errors, links } = page;
  const isFiltered = Boolean(query.search || query.tag || query.archived || query.sort);
  const isEmpty = links.length === 0 && !isFiltered && !query.cursor && Object.keys(errors).length === 0;
  const actions = quickForm(path);
  if (isEmpty) {
    const text = "Paste a URL above to create a short link you can share, print as a QR code and track.";
    return {
      actions,
      body: emptyState("No links yet", text, linkButton(`${path}/import`, "Import links", "quiet")),
    };
  }
  return {
    actions,
    body: html`${filterForm(page)}
<div data-results>${links.length > 0 ? results(page) : noMatches(path)}</div>`,
  };
}

const ARCHIVED: Record<string, boolean | undefined> = { "": false, false: false, true: true, all: undefined };

/** Returns the filter in a query of the list: empty fields don't filter, and archived links are hidden by default. */
export function filterOf({ search, tag, archived = "" }: Query): object {
  return {
    search: search || undefined,
    tag: tag || undefined,
    archived: Object.hasOwn(ARCHIVED, archived) ? ARCHIVED[archived] : archived,
  };
}

function results(page: LinksPage): Html {
  const { path, query, links, previousCursor, nextCursor, shortUrl } = page;
  const most = Math.max(1, ...links.map(({ clicks }) => clicks));
  return html`<form method="post" action="${path}/selection" class="linklist">${CSRF_FIELD}
<input type="hidden" name="return_to" value="${pathWith("", { ...query, done: undefined })}">
<input type="hidden" name="shown_at" value="${page.shownAt}">
<table>
<caption class="visually-hidden">Links</caption>
<thead><tr><th scope="col"><input type="checkbox" data-all aria-label="Select all" hidden><span class="visually-hidden">Select</span></th><th scope="col">Link</th><th scope="col">Tags</th><th scope="col" class="end">Clicks</th><th scope="col">Last click</th><th scope="col">Created</th></tr></thead>
<tbody>
${links.map((link) => row(link, { path, shortUrl, most }))}</tbody>
</table>
${selectionBar(page)}
</form>
${pagination({ path, query, previousCursor, nextCursor }, html`<span class="soft">${describeRange(page)}</span>`)}`;
}

const formatCount = (count: number) => count.toLocaleString("en");

function isPartOfList({ offset, nextCursor }: Pick<LinkPage, "offset" | "nextCursor">): boolean {
  return offset > 0 || nextCursor !== null;
}

/** Says which links of the list the page has, such as “26–50 of 1,000+ links”. */
function describeRange({ links, offset, nextCursor, count }: LinksPage): string {
  if (!isPartOfList({ offset, nextCursor })) return pluralize(links.length, "link");
  // Links may have been created or deleted since the pages before were read: the last page ends the list.
  const last = nextCursor === null && count.isExact ? count.links : offset + links.length;
  const first = Math.max(1, last - links.length + 1);
  const range = [...new Set([first, last])].map(formatCount).join("–");
  return `${range} of ${formatCount(Math.max(last, count.links))}${count.isExact ? "" : "+"} links`;
}

/** Says how many links match the filter, such as “1 link” or “1,000+ links”. */
function describeCount({ links, offset, count }: LinksPage): string {
  if (count.isExact) return pluralize(count.links, "link");
  return `${formatCount(Math.max(offset + links.length, count.links))}+ links`;
}

function row(link: Link, { path, shortUrl, most }: { path: string; shortUrl: string; most: number }): Html {
  const { id, slug, url, title, clicks, lastClickedAt, createdAt } = link;
  const name = displayUrl(link, shortUrl);
  return html`<tr>
<td><input type="checkbox" name="ids" value="${id}" aria-label="Select ${name}"></td>
<td><div class="link">${initial(hostOf(url))}<span class="head"><a class="short" href="${path}/${id}">${name}</a>${statusBadge(link)}${copyIcon(`${shortUrl}/${slug}`, name)}</span>
<span class="where" title="${url}">${title && html`<strong>${title}</strong> · `}${url.replace(/^https?:\/\/(www\.)?/, "")}</span></div></td>
<td>${tagList(link, path, MAX_TAGS_IN_LIST)}</td>
<td class="end"><span class="count">${meter(clicks / most)}<span>${clicks.toLocaleString("en")}</span></span></td>
<td>${lastClickedAt === null ? html`<span class="soft">–</span>` : day(lastClickedAt)}</td>
<td>${day(createdAt)}</td>
</tr>
`;
}

/** Renders the actions on selected links; the style sheet shows them while a row is selected. */
function selectionBar(page: LinksPage): Html {
  const { archived } = page.query;
  return html`<div class="selection" role="group" aria-label="Selected links"><div><span class="chosen" role="status">Selected</span>
${isPartOfList(page) && selectAll(page.count)}</div><div>
${archived !== "true" && html`<button type="submit" name="action" value="archive" class="quiet">${icon("archive")}Archive</button>`}
${archived && archived !== "false" && html`<button type="submit" name="action" value="restore" class="quiet">Restore</button>`}
<input name="tag" aria-label="Tag" placeholder="Tag" maxlength="50" list="tags" autocapitalize="none" autocomplete="off">
<button type="submit" name="action" value="add-tag" class="quiet">${icon("tag")}Add</button>
<button type="submit" name="action" value="remove-tag" class="quiet">Remove</button>
<button type="submit" name="action" value="export" class="quiet">${icon("download")}Export</button>
<button type="submit" name="action" value="delete" class="danger">${icon("trash-2")}Delete</button></div></div>`;
}

/** Renders what extends the selection to the other pages. With scripts, it is shown once the whole page is selected. */
function selectAll({ links, isExact }: LinkCount): Html {
  const count = `${formatCount(links)}${isExact ? "" : "+"}`;
  if (links === CHANGED_MAX && !isExact)
    return html`<span class="soft" data-others>${count} links match. Narrow the filter to select them all.</span>`;
  return html`<label class="option" data-others="${count}"><input type="checkbox" name="all" value="true">Select all ${count} links</label>`;
}

export function displayUrl({ slug }: Pick<Link, "slug">, shortUrl: string): string {
  return `${shortUrl.replace(/^https?:\/\//, "")}/${slug}`;
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^www\./, "");
}

/** Renders the reason that a link doesn't redirect, if any. */
export function statusBadge(link: Link, now = Date.now()): Html {
  const { disabledAt, archived, expiresAt } = link;
  if (disabledAt !== null) return badge("disabled", "bad");
  if (archived) return badge("archived", "warn");
  if (expiresAt !== null && expiresAt <= now) return badge("expired", "warn");
  if (hasReachedLimit(link)) return badge(describeLimit(link), "warn");
  return html``;
}

/** The clicks that are shown are those of people, but those of bots count toward the limit. */
function describeLimit({ botClicks }: Link): string {
  return botClicks === 0 ? "limit reached" : `limit reached, ${botClicks.toLocaleString("en")} from bots`;
}

export function tagList({ tags }: Link, path: string, max = Infinity): Html {
  const hidden = tags.length - max;
  return html`<span class="tags">${tags
    .slice(0, max)
    .map(
      (tag) => html`<a class="badge" href="${path}?${new URLSearchParams({ tag })}">${tag}</a> `,
    )}${hidden > 0 && html`<span class="soft rest" title="${tags.slice(max).join(", ")}">+${hidden}<span class="visually-hidden"> more tags</span></span>`}</span>`;
}

function quickForm(path: string): Html {
  return html`<form method="post" action="${path}" class="quick">${CSRF_FIELD}
<div class="field"><label for="url" class="visually-hidden">Shorten a URL</label>
<input id="url" name="url" inputmode="url" required maxlength="2048" placeholder="Paste a URL to shorten" autocomplete="off"></div>
<button type="submit">${icon("plus")}Create link</button>
<a class="button quiet" href="${path}/new" data-create>Custom link</a>
</form>`;
}

function noMatches(path: string): Html {
  return emptyState(
    "No links found",
    "Try a broader search or include archived links.",
    linkButton(path, "Clear filters", "quiet"),
  );
}

const SORTS = [
  ["-created_at", "Newest first"],
  ["-clicks", "Most clicks"],
  ["-last_clicked_at", "Last clicked"],
] as const;
const STATES = [
  ["false", "Not archived"],
  ["true", "Archived"],
  ["all", "All"],
] as const;

function filterForm(page: LinksPage): Html {
  const { path, query, errors, tags } = page;
  return html`<form method="get" action="${path}" class="row" role="search" aria-label="Links" data-filter>
<div class="field find">${icon("search")}<label for="search" class="visually-hidden">Search</label>
<input id="search" name="search" type="search" value="${query.search}" maxlength="255" placeholder="Search URL, slug or title"${errors.search && html` aria-invalid="true" aria-describedby="search-error"`}>${
    errors.search && html`<p class="error" id="search-error">${errors.search}</p>`
  }</div>
<div class="field"><label for="tag" class="visually-hidden">Tag</label>
<input id="tag" name="tag" value="${query.tag}" maxlength="50" list="tags" placeholder="Any tag" autocapitalize="none" autocomplete="off"${errors.tag && html` aria-invalid="true" aria-describedby="tag-error"`}>${
    errors.tag && html`<p class="error" id="tag-error">${errors.tag}</p>`
  }</div>
<datalist id="tags">${tags.map((tag) => html`<option value="${tag}"></option>`)}</datalist>
${filter("archived", "Show", query.archived ?? "false", STATES)}
${filter("sort", "Sort", query.sort ?? "-created_at", SORTS)}
<button type="submit" class="quiet" data-apply>Apply</button>
<span class="actions">${linkButton(`${path}/import`, "Import", "quiet")}<a class="button quiet" href="${pathWith(`${path}.csv`, { search: query.search, tag: query.tag, archived: query.archived ?? "false" })}" data-export>Export ${describeCount(page)}<span class="visually-hidden"> as CSV</span></a></span>
</form>`;
}

function filter(
  name: string,
  label: string,
  value: string,
  options: readonly (readonly [string, string])[],
): Html {
  return html`<div class="field"><label for="${name}" class="visually-hidden">${label}</label>
<select id="${name}" name="${name}">${options.map(
    ([option, text]) =>
      html`<option value="${option}"${option === value && html` selected`}>${text}</option>`,
  )}</select></div>`;
}
