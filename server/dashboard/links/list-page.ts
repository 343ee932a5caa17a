import { hasReachedLimit } from "../../../resources/links/service.ts";
import type { Link } from "../../../resources/links/types.ts";
import {
  badge,
  breakable,
  CSRF_FIELD,
  copyButton,
  day,
  field,
  linkButton,
  select,
} from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, pagination, table } from "../../ui/table.ts";

type LinksPage = {
  path: string;
  query: Record<string, string | undefined>;
  errors: Partial<Record<string, string>>;
  links: Link[];
  nextCursor: string | null;
  shortUrl: string;
};

// The page of a link shows all of its tags.
const MAX_TAGS_IN_LIST = 5;

export function linksPage({ path, query, errors, links, nextCursor, shortUrl }: LinksPage): Html {
  const isFiltered = Boolean(query.search || query.tag || query.archived);
  const isEmpty = links.length === 0 && !isFiltered && !query.cursor && Object.keys(errors).length === 0;
  if (isEmpty)
    return html`${quickForm(path)}\n${emptyState("No links yet", "Paste a URL above to create a short link you can share, print as a QR code and track.")}`;
  const results =
    links.length > 0
      ? html`<div class="links">${table("Links", columnsOf(path, shortUrl), links)}</div>`
      : noMatches(path);
  return html`${quickForm(path)}
${filterForm(path, query, errors)}
${results}
${pagination(path, query, nextCursor)}`;
}

export function displayUrl({ slug }: Pick<Link, "slug">, shortUrl: string): string {
  return `${shortUrl.replace(/^https?:\/\//, "")}/${slug}`;
}

/** Renders the reason that a link doesn't redirect, if any. */
export function statusBadge(link: Link, now = Date.now()): Html {
  const { disabledAt, archived, expiresAt } = link;
  if (disabledAt !== null) return badge("disabled", "bad");
  if (archived) return badge("archived", "warn");
  if (expiresAt !== null && expiresAt <= now) return badge("expired", "warn");
  if (hasReachedLimit(link)) return badge("limit reached", "warn");
  return html``;
}

export function tagList({ tags }: Link, path: string, max = Infinity): Html {
  const hidden = tags.length - max;
  return html`<span class="tags">${tags
    .slice(0, max)
    .map(
      (tag) => html`<a class="badge" href="${path}?${new URLSearchParams({ tag })}">${tag}</a> `,
    )}${hidden > 0 && html`<span class="soft">and ${hidden} more</span>`}</span>`;
}

function quickForm(path: string): Html {
  return html`<form method="post" action="${path}" class="panel row quick">${CSRF_FIELD}
${field({ name: "url", label: "Shorten a URL", type: "url", attributes: html`required maxlength="2048" placeholder="https://example.com/page" autocomplete="off"` })}
<button type="submit">Create link</button>
${linkButton(`${path}/new`, "More options", "quiet")}
</form>`;
}

function noMatches(path: string): Html {
  return emptyState(
    "No links found",
    "Try a broader search or include archived links.",
    linkButton(path, "Clear filters", "quiet"),
  );
}

function filterForm(path: string, query: LinksPage["query"], errors: LinksPage["errors"]): Html {
  return html`<form method="get" action="${path}" class="row" role="search" aria-label="Links">
${field({ name: "search", label: "Search", type: "search", value: query.search, error: errors.search, attributes: html`maxlength="255" placeholder="URL, slug or title"` })}
${field({ name: "tag", label: "Tag", value: query.tag, error: errors.tag, attributes: html`maxlength="50" autocapitalize="none"` })}
${select({
  name: "archived",
  label: "Show",
  value: query.archived ?? "false",
  error: errors.archived,
  options: [
    ["false", "Active"],
    ["true", "Archived"],
    ["all", "All"],
  ],
})}
<button type="submit" class="quiet">Search</button>
</form>`;
}

function columnsOf(path: string, shortUrl: string): Columns<Link> {
  return {
    "Short link": (link) =>
      html`<span class="copyable short"><a href="${path}/${link.id}">${breakable(displayUrl(link, shortUrl))}</a>${copyButton(
        `${shortUrl}/${link.slug}`,
        displayUrl(link, shortUrl),
      )}</span>`,
    Destination: (link) =>
      html`<div class="target">${link.title && html`<strong>${link.title}</strong>`}<span class="soft clipped" title="${link.url}">${link.url}</span>${statusBadge(link)}${tagList(link, path, MAX_TAGS_IN_LIST)}</div>`,
    Clicks: ({ clicks }) => html`<span class="number">${clicks.toLocaleString("en")}</span>`,
    Created: ({ createdAt }) => day(createdAt),
  };
}
