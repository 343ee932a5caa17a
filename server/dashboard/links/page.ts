import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { Link } from "../../../resources/ports.ts";
import { type Html, html } from "../html.ts";
import { clicksPanel } from "./clicks.ts";
import { copyable, formButton, linkButton, time } from "./controls.ts";
import { shownAs, stateOf, tagsOf } from "./links.ts";

type LinkPage = {
  link: Link;
  path: string;
  shortUrl: string;
  /** The name of the member who made it; nothing where it was a client, or somebody who has left. */
  maker: string | undefined;
  analytics: AnalyticsView;
  csrf: string | undefined;
};

const REDIRECT_NAMES = { 301: "permanent", 302: "temporary", 307: "temporary", 308: "permanent" };

/** A link: its short address and QR code, what is known of it, and its clicks. */
export function linkPage({ link, path, shortUrl, maker, analytics, csrf }: LinkPage): {
  body: Html;
  actions: Html;
} {
  return {
    actions: html`${linkButton(`${path}/edit`, "Edit", "quiet")}${formButton({
      action: path,
      csrf,
      text: link.archived ? "Put to use again" : "Archive",
      fields: { archived: String(!link.archived) },
    })}`,
    body: html`<div class="panel beside">
<div>${facts({ link, path, shortUrl, maker })}</div>
${qrCode(link, path, shortUrl)}
</div>
${clicksPanel(analytics, {
  title: "Clicks of the last 30 days",
  empty:
    link.clicks > 0
      ? "Nobody followed the link in the last 30 days."
      : "Nobody has followed the link yet. Share it, and its clicks appear here within seconds.",
  more: html`${linkButton(`${path}/analytics`, "Other days", "quiet")}`,
})}
<p>${linkButton(`${path}/delete`, "Delete link", "danger")}</p>`,
  };
}

function facts({
  link,
  path,
  shortUrl,
  maker,
}: Pick<LinkPage, "link" | "path" | "shortUrl" | "maker">): Html {
  const listPath = path.slice(0, path.lastIndexOf("/"));
  const limit = link.maxClicks === null ? "" : ` of at most ${link.maxClicks.toLocaleString("en")}`;
  return html`<dl class="facts">
<dt>Short link</dt><dd>${copyable(`${shortUrl}/${link.slug}`, "the short link")} ${stateOf(link)}</dd>
<dt>Leads to</dt><dd><a class="long" href="${link.url}" rel="noreferrer">${link.url}</a></dd>
<dt>Clicks</dt><dd>${link.clicks.toLocaleString("en")}${limit}, ${link.lastClickedAt === null ? "none so far" : html`last ${time(link.lastClickedAt)}`}</dd>
${link.tags.length > 0 ? html`<dt>Tags</dt><dd>${tagsOf(link, listPath)}</dd>` : html``}
${link.expiresAt === null ? html`` : html`<dt>Ends</dt><dd>${time(link.expiresAt)}</dd>`}
<dt>Redirect</dt><dd>${link.redirectType}, ${REDIRECT_NAMES[link.redirectType]}</dd>
${link.externalId === null ? html`` : html`<dt>Your own id</dt><dd><code>${link.externalId}</code></dd>`}
${Object.entries(link.metadata).map(([key, value]) => html`<dt><code>${key}</code></dt><dd>${String(value)}</dd>`)}
<dt>Created</dt><dd>${time(link.createdAt)} by ${maker ?? html`<code>${link.createdBy}</code>`}</dd>
${link.updatedAt === link.createdAt ? html`` : html`<dt>Changed</dt><dd>${time(link.updatedAt)}</dd>`}
</dl>`;
}

function qrCode(link: Link, path: string, shortUrl: string): Html {
  return html`<figure class="qr"><img src="${path}/qr.svg" alt="QR code that leads to ${shownAs(link, shortUrl)}" width="168" height="168">
<figcaption><a href="${path}/qr.svg?download=1" download>Download the QR code<span class="visually-hidden"> as SVG</span></a></figcaption></figure>`;
}
