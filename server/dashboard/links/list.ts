import type { Context } from "koa";
import { readQuery } from "../../../resources/http/validate.ts";
import { CHANGED_MAX } from "../../../resources/links/change-many.ts";
import { type LinkCount, type LinkPage, listQuery } from "../../../resources/links/list.ts";
import { shortUrlOf, toView } from "../../../resources/links/schema.ts";
import type { Link } from "../../../resources/links/types.ts";
import { isPaid } from "../../../resources/plans.ts";
import { prefersHtml, textFieldOf } from "../../http/request-body.ts";
import * as ui from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, pagination, pathWith } from "../../ui/table.ts";
import { pluralize } from "../../ui/text.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { isSignedConfirmation } from "../confirmation.ts";
import { type FieldErrors, queryErrors, redisplayForm, type Show, withoutEmpty } from "../forms.ts";
import { sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

const FREE_PLAN_NOTE = "The API is available on Growth and Premium.";

/** Adds the list of links, and counts those that match its filter. */
export const list: RouteModule = (router, { services: { links, showOrganization }, urls, allow }) => {
  async function countMatches(ctx: Context, filter: object, page: LinkPage): Promise<LinkCount> {
    if (page.offset === 0 && page.nextCursor === null) return { links: page.links.length, isExact: true };
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    if (isFiltered) return links.matches.count(actorOf(ctx), filter);
    const { usage } = await showOrganization(membershipOf(ctx).id);
    return { links: usage.links, isExact: true };
  }

  const show: Show = async (ctx, _error, problem) => {
    if (!prefersHtml(ctx)) {
      const { links: page, nextCursor } = await links.list(actorOf(ctx), ctx.state.query);
      return sendJson(ctx, { data: page.map((link) => toView(link, urls.short)), next_cursor: nextCursor });
    }
    const { error, errors } = queryErrors(problem, ["search", "tag"]);
    const shownAt = Date.now();
    const query = problem ? {} : (ctx.query as Record<string, string>);
    const [page, tags, listed] = await Promise.all([
      links.list(actorOf(ctx), { ...(problem ? {} : pagingOf(ctx)), ...filterOf(query) }),
      links.suggestTags(actorOf(ctx)),
      links.listHosts(actorOf(ctx)),
    ]);
    const count = await countMatches(ctx, filterOf(query), page);
    const path = pathTo(ctx, "links");
    const hosts = [new URL(urls.short).host, ...listed];
    const content = { path, query, errors, shortUrl: urls.short, hosts, count, tags, shownAt, ...page };
    showPage(ctx, {
      title: "Links",
      intro: isPaid(membershipOf(ctx).plan) ? undefined : FREE_PLAN_NOTE,
      section: "links",
      error,
      undo: undoForm(ctx),
      actions: quickForm(path),
      body: linksPage(content),
    });
  };
  router.get(`${ORGANIZATION}/links`, allow(), readQuery(listQuery), redisplayForm(show), (ctx) => show(ctx));
};

/** Returns what a query says beside the filter. */
function pagingOf(ctx: Context): object {
  const { done: _, undo: __, signature: ___, ...fields } = ctx.state.query;
  return withoutEmpty(fields);
}

/** Renders the form that undoes the change of selected links that a confirmation is about, if it can be undone. */
function undoForm(ctx: Context): Html | undefined {
  const { done, undo, signature: _, ...query } = ctx.query as Record<string, string>;
  const [, state] = /^links-(archived|restored)-\d/.exec(textFieldOf(done)) ?? [];
  if (!state || !undo || !isSignedConfirmation(ctx)) return undefined;
  const action = state === "archived" ? "restore" : "archive";
  const fields = { action, ids: undo, is_undo: "true", return_to: pathWith("", query) };
  return ui.formButton({ action: `${pathTo(ctx, "links")}/selection`, text: "Undo", fields });
}

type Query = Record<string, string | undefined>;

type LinksPage = LinkPage & {
  path: string;
  query: Query;
  errors: FieldErrors;
  count: LinkCount;
  /** When the links were read, in epoch milliseconds. */
  shownAt: number;
  tags: string[];
  shortUrl: string;
  /** The hosts that links can have. */
  hosts: string[];
};

// The page of a link shows all of its tags.
const MAX_TAGS_IN_LIST = 2;

function linksPage(page: LinksPage): Html {
  const { path, query, errors, links } = page;
  const isFiltered = ["search", "tag", "domain", "archived"].some((name) => query[name]);
  if (links.length > 0 || isFiltered || query.cursor || Object.keys(errors).length > 0) {
    const hint = "Try a broader search or include archived links.";
    const noMatches = () => emptyState("No links found", hint, ui.linkButton(path, "Clear filters", "quiet"));
    return html`${filterForm(page)}
<div data-live>${links.length > 0 ? results(page) : noMatches()}</div>`;
  }
  const text = "Paste a URL above to create a short link you can share, print as a QR code and track.";
  return emptyState("No links yet", text, ui.linkButton(`${path}/import`, "Import links", "quiet"));
}

const ARCHIVED: Record<string, boolean | undefined> = { "": false, false: false, true: true, all: undefined };

/** Returns the filter in a query of the list: empty fields don't filter, and archived links are hidden by default. */
export function filterOf({ search, tag, domain, archived = "" }: Query): object {
  return {
    search: search || undefined,
    tag: tag || undefined,
    domain: domain || undefined,
    archived: Object.hasOwn(ARCHIVED, archived) ? ARCHIVED[archived] : archived,
  };
}

function results(page: LinksPage): Html {
  const { path, query, links, previousCursor, nextCursor, shortUrl } = page;
  const most = Math.max(1, ...links.map(({ clicks }) => clicks));
  const shown = { ...query, done: undefined, undo: undefined, signature: undefined };
  const target = html`method="post" action="${path}/selection"`;
  const common = html`${ui.CSRF_FIELD}${ui.hidden("return_to", pathWith("", shown))}`;
  const sortable = (name: string, field: string) => sortHead(name, field, path, shown);
  return html`<div class="linklist">
<form ${target} id="selection">${common}${ui.hidden("shown_at", String(page.shownAt))}${selectionBar(page)}</form>
${["archive", "restore"].map((action) => html`<form ${target} id="${action}">${common}${ui.hidden("action", action)}</form>`)}
<table>
<caption class="visually-hidden">Links</caption>
<thead><tr><th scope="col"><input type="checkbox" data-all aria-label="Select all"><span class="visually-hidden">Select</span></th><th scope="col">Link</th><th scope="col">Tags</th>${sortable("Clicks", "clicks")}${sortable("Last click", "last_clicked_at")}${sortable("Created", "created_at")}<th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
<tbody>
${links.map((link) => row(link, { path, shortUrl, most }))}</tbody>
</table>
</div>
${pagination({ path, query, previousCursor, nextCursor }, html`<span class="soft">${describeRange(page)}</span>`)}`;
}

/** Renders a heading that sorts the list, in the other direction if it is sorted by the field already. */
function sortHead(name: string, field: string, path: string, query: Query): Html {
  const { sort = "-created_at", cursor: _, ...filter } = query;
  const isDescending = sort === `-${field}`;
  const order = isDescending ? "descending" : sort === field && "ascending";
  const href = pathWith(path, { ...filter, sort: isDescending ? field : `-${field}` });
  return html`<th scope="col"${field === "clicks" && html` class="end"`}${order && html` aria-sort="${order}"`}><a href="${href}">${name}${order && ui.icon("arrow-right")}</a></th>`;
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
  const { id, url, title, clicks, lastClickedAt, createdAt } = link;
  const name = displayUrl(link, shortUrl);
  return html`<tr>
<td><input type="checkbox" name="ids" value="${id}" form="selection" aria-label="Select ${name}"><a class="visually-hidden" href="#first-action">Go to actions</a></td>
<td><div class="link"><span class="head"><a class="short" href="${path}/${id}">${name}</a>${statusBadge(link)}${passwordBadge(link)}${ui.copyIcon(shortUrlOf(link, shortUrl), name)}</span>
<span class="where" title="${url}">${title && html`<strong>${title}</strong> · `}${url.replace(/^https?:\/\/(www\.)?/, "")}</span></div></td>
<td>${tagList(link, path, MAX_TAGS_IN_LIST)}</td>
<td class="end"><span class="count">${ui.meter(clicks / most)}<span>${clicks.toLocaleString("en")}</span></span></td>
<td>${lastClickedAt === null ? html`<span class="soft">–</span>` : ui.day(lastClickedAt)}</td>
<td>${ui.day(createdAt)}</td>
<td>${rowMenu(link, name, shortUrl)}</td>
</tr>
`;
}

/** Renders what can be done with a link. Its addresses are relative: with 25 rows, that saves 6 KB. */
function rowMenu(link: Link, name: string, shortUrl: string): Html {
  const { id, archived, disabledAt } = link;
  const path = `links/${id}`;
  const isOff = disabledAt !== null;
  return html`<details class="menu" name="row"><summary class="glyph">${ui.icon("ellipsis")}<span class="visually-hidden">Actions for ${name}</span></summary><div class="sheet">
<button type="button" data-copy="${shortUrlOf(link, shortUrl)}">Copy</button>
${!isOff && html`<a href="${path}/edit">Edit</a>`}<a href="${path}/qr">QR code</a><a href="${path}/analytics">Analytics</a>
${!isOff && html`<button name="ids" value="${id}" form="${archived ? "restore" : "archive"}">${archived ? "Restore" : "Archive"}</button>`}<a class="danger" href="${path}/delete">Delete</a></div></details>`;
}

/** Renders the actions on selected links; the style sheet shows them while a row is selected. */
function selectionBar(page: LinksPage): Html {
  const { archived } = page.query;
  const isMixed = archived === "all";
  const action = (value: string, text: Html | string, attributes = html` class="quiet"`) =>
    html`<button name="action" value="${value}"${attributes}>${text}</button>`;
  const first = html` class="quiet" id="first-action"`;
  // The first button is the one that Enter presses in the field of the tag.
  return html`<div class="selection" role="group" aria-label="Selected links">${action("add-tag", "", html` hidden`)}
<div><span class="chosen" role="status">Selected</span>${isPartOfList(page) && selectAll(page.count)}</div><div>
${archived !== "true" && action("archive", html`${ui.icon("archive")}Archive`, first)}
${(isMixed || archived === "true") && action("restore", "Restore", isMixed ? undefined : first)}
<details class="menu"><summary class="button quiet">${ui.icon("tag")}Tags</summary><div class="sheet">
<input name="tag" aria-label="Tag" placeholder="Tag" maxlength="50" list="tags" autocapitalize="none" autocomplete="off">
<div class="actions">${action("add-tag", "Add tag")}${action("remove-tag", "Remove tag")}</div></div></details>
${action("change", "Change…")}
${action("export", html`${ui.icon("download")}Export`)}
${action("delete", html`${ui.icon("trash-2")}Delete`, html` class="danger"`)}</div></div>`;
}

/** Renders what extends the selection to the other pages. With scripts, it is shown once the whole page is selected. */
function selectAll({ links, isExact }: LinkCount): Html {
  const count = `${formatCount(links)}${isExact ? "" : "+"}`;
  if (links === CHANGED_MAX && !isExact)
    return html`<span class="soft" data-others>${count} links match. Narrow the filter to select them all.</span>`;
  return html`<label class="option" data-others="${count}"><input type="checkbox" name="all" value="true">Select all ${count} links</label>`;
}

export function displayUrl(link: Pick<Link, "domain" | "slug">, shortUrl: string): string {
  return shortUrlOf(link, shortUrl).replace(/^https?:\/\//, "");
}

/** Renders the reason that a link doesn't redirect, if any. */
export function statusBadge(link: Link): Html {
  const { disabledAt, archived, expiresAt, clicks, botClicks, maxClicks } = link;
  if (disabledAt !== null) return ui.badge("disabled", "bad");
  if (archived) return ui.badge("archived", "warn");
  if (expiresAt !== null && expiresAt <= Date.now()) return ui.badge("expired", "warn");
  // The clicks that are shown are those of people, but those of bots count toward the limit.
  const ofBots = botClicks === 0 ? "" : `, ${botClicks.toLocaleString("en")} from bots`;
  if (maxClicks !== null && clicks + botClicks >= maxClicks)
    return ui.badge(`limit reached${ofBots}`, "warn");
  return html``;
}

export function passwordBadge({ hasPassword }: Link): Html {
  return hasPassword ? ui.badge("password") : html``;
}

export function tagList({ tags }: Link, path: string, max = Infinity): Html {
  const hidden = tags.length - max;
  return html`<span class="tags">${tags
    .slice(0, max)
    .map(
      (tag) => html`<a class="badge" href="${path}?${new URLSearchParams({ tag })}">${tag}</a> `,
    )}${hidden > 0 && html`<span class="soft rest" title="${tags.slice(max).join(", ")}">+${hidden}<span class="visually-hidden"> more tags</span></span>`}</span>`;
}

/** Renders the box that creates a link. */
export function quickForm(path: string): Html {
  return html`<form method="post" action="${path}" class="quick">${ui.CSRF_FIELD}
<div class="field"><label for="url" class="visually-hidden">Shorten a URL</label>
<input id="url" name="url" inputmode="url" required maxlength="2048" placeholder="Paste a URL to shorten" autocomplete="off"></div>
<button type="submit">${ui.icon("plus")}Create link</button>
<a class="button quiet" href="${path}/new" data-create>Custom link</a>
</form>`;
}

const STATES = [
  ["false", "Not archived"],
  ["true", "Archived"],
  ["all", "All"],
] as const;

function filterForm(page: LinksPage): Html {
  const { path, query, errors, tags, hosts } = page;
  const { domain = "", archived = "false" } = query;
  const domains = ["", ...new Set([...hosts, ...(domain ? [domain] : [])])];
  return html`<form method="get" action="${path}" class="row" role="search" aria-label="Links" data-filter>
<div class="field find">${ui.icon("search")}<label for="search" class="visually-hidden">Search</label>
<input id="search" name="search" type="search" value="${query.search}" maxlength="255" placeholder="Search URL, slug or title"${errors.search && html` aria-invalid="true" aria-describedby="search-error"`}>${
    errors.search && html`<p class="error" id="search-error">${errors.search}</p>`
  }</div>
${ui.field({ name: "tag", label: "Tag", hidesLabel: true, value: query.tag, error: errors.tag, attributes: html`maxlength="50" list="tags" placeholder="Any tag" autocapitalize="none" autocomplete="off"` })}
<datalist id="tags">${tags.map((tag) => html`<option value="${tag}"></option>`)}</datalist>
${domains.length > 2 && ui.select({ name: "domain", label: "Domain", hidesLabel: true, value: domain, options: domains.map((host) => [host, host || "Any domain"]) })}
${ui.select({ name: "archived", label: "Show", hidesLabel: true, value: archived, options: STATES })}
${query.sort && ui.hidden("sort", query.sort)}
<button type="submit" class="quiet" data-apply>Apply</button>
<span class="actions">${ui.linkButton(`${path}/import`, "Import", "quiet")}<a class="button quiet" href="${pathWith(`${path}.csv`, { search: query.search, tag: query.tag, domain, archived })}" data-live>Export ${describeCount(page)}<span class="visually-hidden"> as CSV</span></a></span>
</form>`;
}
