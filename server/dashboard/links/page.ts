import type { Context } from "koa";
import { shortUrlOf } from "../../../resources/links/schema.ts";
import type { Link } from "../../../resources/links/types.ts";
import { describeConditions } from "../../ui/conditions.ts";
import { CSRF_FIELD, copyable, field, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pluralize } from "../../ui/text.ts";
import { actorOf, pathTo } from "../access.ts";
import { isSignedConfirmation } from "../confirmation.ts";
import { creatorOf } from "../creator.ts";
import { showPage } from "../responses.ts";
import type { DashboardOptions } from "../route.ts";
import {
  clicksPanel,
  clicksPath,
  clicksQueryOf,
  filterChips,
  formatRange,
  sourcesPanel,
} from "./analytics.ts";
import { cardFacts } from "./card.ts";
import { valuesOf } from "./form.ts";
import { displayUrl, passwordBadge, statusBadge, tagList } from "./list.ts";
import { qrCode } from "./qr-code.ts";

const REDIRECT_NAMES = { 301: "permanent", 302: "temporary", 307: "temporary", 308: "permanent" };

export async function showLink(
  ctx: Context,
  link: Link,
  { services: { links }, storage, urls, settings }: DashboardOptions,
): Promise<void> {
  const path = `${pathTo(ctx, "links")}/${link.id}`;
  const name = displayUrl(link, urls.short);
  const query = clicksQueryOf(ctx);
  const caller = actorOf(ctx);
  const [{ found: analytics, previous, earliest }, creator] = await Promise.all([
    links.report(caller, link.id, query, 0),
    creatorOf(storage, link.organizationId, link),
  ]);
  const isEmpty = analytics.clicks + analytics.bot_clicks === 0;
  const imported = isEmpty && link.clicks > 0 ? await links.importedClicks(caller, link) : 0;
  const isLatest = Object.keys(query).length === 0;
  const when = isLatest ? "in the last 30 days" : "in this date range";
  const clicks = clicksPanel(analytics, {
    title: isLatest ? "Clicks in the last 30 days" : formatRange(analytics),
    empty:
      imported > 0
        ? `${pluralize(imported, "imported click")}. No new clicks ${when}.`
        : link.lastClickedAt !== null
          ? `No clicks ${when}.`
          : "No clicks yet. Share the link, and its clicks appear here within seconds.",
    more: linkButton(clicksPath(`${path}/analytics`, query), "Date range", "quiet"),
    previous,
  });
  const needsCountries = settings.MMDB_PATH === undefined;
  const sources = sourcesPanel(analytics, { path: `${path}/analytics`, query, earliest, needsCountries });
  const body = html`${disabledAlert(link)}<div class="panel beside">
<div>${details(link, path, urls.short, creator)}${link.disabledAt === null && quickEdit(link, path)}</div>
${qrCode({ path, shownUrl: name }, html`<a class="button quiet small" href="${path}/qr">Color</a>`)}
</div>
${filterChips(path, query)}
${clicks}
${sources}
<p>${linkButton(`${path}/delete`, "Delete link", "danger")}</p>`;
  const [undo, actions] = [undoForm(ctx, link, path), buttons(link, path)];
  showPage(ctx, { title: link.title ?? name, section: "links", undo, actions, body });
}

/** Renders the form that undoes what the confirmation is about. */
function undoForm(ctx: Context, link: Link, path: string): Html | undefined {
  const { done, undo } = ctx.query;
  if (done !== (link.archived ? "link-archived" : "link-restored")) return undefined;
  if (undo !== link.id || !isSignedConfirmation(ctx)) return undefined;
  return formButton({ action: path, text: "Undo", fields: { archived: String(!link.archived) } });
}

/** Renders the fields that change most often; the page with all fields shows what was rejected. */
function quickEdit(link: Link, path: string): Html {
  const { url, title, tags } = valuesOf(link);
  return html`<details><summary class="opener">Quick edit</summary>
<form method="post" action="${path}" class="stack">${CSRF_FIELD}<input type="hidden" name="version" value="${link.version}">
${field({ name: "url", label: "Destination URL", value: url, attributes: html`required maxlength="2048" inputmode="url"` })}
${field({ name: "title", label: "Title", value: title, attributes: html`maxlength="255"` })}
${field({ name: "tags", label: "Tags", value: tags, hint: "Separate tags with commas." })}
<button type="submit">Save</button>
</form></details>`;
}

function buttons({ disabledAt, archived }: Link, path: string): Html {
  if (disabledAt !== null) return html``;
  const fields = { archived: String(!archived) };
  return html`${linkButton(`${path}/edit`, "Edit link", "quiet")}${formButton({ action: path, text: archived ? "Restore" : "Archive", fields })}`;
}

function disabledAlert({ disabledAt, disabledReason }: Link): Html {
  if (disabledAt === null) return html``;
  return html`<p class="alert bad">The operator of this service disabled this link on ${time(disabledAt)}. Visitors see that it’s no longer available. You can delete it, but not change it.${disabledReason && html` Reason: ${disabledReason}`}</p>`;
}

function details(link: Link, path: string, shortUrl: string, creator: Html): Html {
  const listPath = path.slice(0, path.lastIndexOf("/"));
  const short = shortUrlOf(link, shortUrl);
  return html`<dl class="facts">
<dt>Short link</dt><dd>${copyable(short, "the short link", html`<a class="button quiet small" href="${short}">Open</a>`)} ${statusBadge(link)}${passwordBadge(link)}</dd>
<dt>Destination</dt><dd><a class="long" href="${link.url}" rel="noreferrer">${link.url}</a></dd>
${link.rules.map((rule) => html`<dt>${describeConditions(rule.if)}</dt><dd><a class="long" href="${rule.url}" rel="noreferrer">${rule.url}</a></dd>`)}
<dt>Clicks</dt><dd>${clicksOf(link)}</dd>
${link.tags.length > 0 && html`<dt>Tags</dt><dd>${tagList(link, listPath)}</dd>`}
${link.expiresAt !== null && html`<dt>Expires</dt><dd>${time(link.expiresAt)}</dd>`}
${link.fallbackUrl !== null && html`<dt>Fallback URL</dt><dd><a class="long" href="${link.fallbackUrl}" rel="noreferrer">${link.fallbackUrl}</a></dd>`}
<dt>Redirect</dt><dd>${link.redirectType} (${REDIRECT_NAMES[link.redirectType]})</dd>
${!link.forwardQuery && html`<dt>Visitors’ parameters</dt><dd>Left out</dd>`}
${link.forwardPath && html`<dt>Visitors’ paths</dt><dd>Added to the destination</dd>`}
${link.card && cardFacts(link.card)}
${link.externalId !== null && html`<dt>External ID</dt><dd><code>${link.externalId}</code></dd>`}
${Object.entries(link.metadata).map(([key, value]) => html`<dt><code>${key}</code></dt><dd>${String(value)}</dd>`)}
<dt>Created</dt><dd>${time(link.createdAt)} ${creator}</dd>
${link.updatedAt !== link.createdAt && html`<dt>Updated</dt><dd>${time(link.updatedAt)}</dd>`}
</dl>`;
}

function clicksOf({ clicks, botClicks, maxClicks, lastClickedAt }: Link): Html {
  const parts = [
    clicks + botClicks === 0 ? "None yet" : clicks.toLocaleString("en"),
    botClicks > 0 && `${botClicks.toLocaleString("en")} from known bots`,
    maxClicks !== null && `limit ${maxClicks.toLocaleString("en")} (bots and link previews count, too)`,
    lastClickedAt !== null && html`last ${time(lastClickedAt)}`,
  ];
  return html`${parts.filter(Boolean).map((part, index) => html`${index > 0 && " · "}${part}`)}`;
}
