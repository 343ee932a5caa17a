import type { Link } from "../../../resources/ports.ts";
import { type Html, html } from "../html.ts";
import { badge, breakable, copyButton, csrfField, day, field, linkButton, select } from "./controls.ts";
import { type Column, emptyState, pagination, table } from "./table.ts";

type LinksPage = {
  path: string;
  /** As it was asked for. */
  query: Record<string, string | undefined>;
  /** What was wrong with that. */
  errors: Partial<Record<string, string>>;
  links: Link[];
  nextCursor: string | null;
  shortUrl: string;
  csrf: string | undefined;
};

// A row is for finding a link; its page has all tags.
const TAGS_IN_LIST = 5;

/** The links: one line to make another one, a filter, and those that are found. */
export function linksPage({ path, query, errors, links, nextCursor, shortUrl, csrf }: LinksPage): Html {
  const isFiltered = Boolean(query.search || query.tag || query.archived);
  const isEmpty = links.length === 0 && !isFiltered && !query.cursor && Object.keys(errors).length === 0;
  return html`${quickForm(path, csrf)}
${
  isEmpty
    ? firstSteps()
    : html`${filterForm(path, query, errors)}
${
  links.length > 0
    ? html`<div class="links">${table("Links", columnsOf(path, shortUrl), links)}</div>`
    : emptyState(
        "No link matches",
        "Search for less, or among all links, the archived ones too.",
        linkButton(path, "Show all in use", "quiet"),
      )
}
${pagination(path, query, nextCursor)}`
}`;
}

/** The short address as people say it, without the scheme. */
export function shownAs({ slug }: Pick<Link, "slug">, shortUrl: string): string {
  return `${shortUrl.replace(/^https?:\/\//, "")}/${slug}`;
}

/** What a link is at the moment, where it is not simply in use. */
export function stateOf({ archived, expiresAt, maxClicks, clicks }: Link, now = Date.now()): Html {
  if (archived) return badge("archived", "warn");
  if (expiresAt !== null && expiresAt <= now) return badge("expired", "warn");
  if (maxClicks !== null && clicks >= maxClicks) return badge("used up", "warn");
  return html``;
}

/** The words that a link is found by, each a way to the others that have it. */
export function tagsOf({ tags }: Link, path: string, most = Infinity): Html {
  const more = tags.length - most;
  return html`<span class="tags">${tags
    .slice(0, most)
    .map(
      (tag) => html`<a class="badge" href="${path}?${new URLSearchParams({ tag })}">${tag}</a> `,
    )}${more > 0 ? html`<span class="soft">and ${more} more</span>` : html``}</span>`;
}

function quickForm(path: string, csrf: string | undefined): Html {
  return html`<form method="post" action="${path}" class="panel row quick">${csrfField(csrf)}
${field({ name: "url", label: "Shorten an address", type: "url", attributes: html`required maxlength="2048" placeholder="https://example.com/a-long-address" autocomplete="off"` })}
<button type="submit">Create link</button>
${linkButton(`${path}/new`, "More options", "quiet")}
</form>`;
}

function firstSteps(): Html {
  return emptyState(
    "No links yet",
    "Paste an address above, and get a short one that you can share, print as a QR code, and see the clicks of.",
  );
}

function filterForm(path: string, query: LinksPage["query"], errors: LinksPage["errors"]): Html {
  return html`<form method="get" action="${path}" class="row" role="search" aria-label="Links">
${field({ name: "search", label: "Search", type: "search", value: query.search, error: errors.search, attributes: html`maxlength="255" placeholder="address, slug or title"` })}
${field({ name: "tag", label: "Tag", value: query.tag, error: errors.tag, attributes: html`maxlength="50" autocapitalize="none"` })}
${select({
  name: "archived",
  label: "Show",
  value: query.archived ?? "false",
  options: [
    ["false", "In use"],
    ["true", "Archived"],
    ["all", "All"],
  ],
})}
<button type="submit" class="quiet">Search</button>
</form>`;
}

function columnsOf(path: string, shortUrl: string): Column<Link>[] {
  return [
    {
      head: "Short link",
      cell: (link) =>
        html`<span class="copyable short"><a href="${path}/${link.id}">${breakable(shownAs(link, shortUrl))}</a>${copyButton(
          `${shortUrl}/${link.slug}`,
          shownAs(link, shortUrl),
        )}</span>`,
    },
    {
      head: "Leads to",
      cell: (link) =>
        html`<div class="target">${link.title ? html`<strong>${link.title}</strong>` : html``}<span class="soft clipped" title="${link.url}">${link.url}</span>${stateOf(link)}${tagsOf(link, path, TAGS_IN_LIST)}</div>`,
    },
    {
      head: "Clicks",
      cell: ({ clicks }) => html`<span class="number">${clicks.toLocaleString("en")}</span>`,
    },
    { head: "Created", cell: ({ createdAt }) => day(createdAt) },
  ];
}
