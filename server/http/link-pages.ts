import type { LinkPreview } from "../../resources/links/service.ts";
import { describeConditions } from "../ui/conditions.ts";
import { breakable, day } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { messagePage, page } from "../ui/page.ts";

/** Renders what visitors see of a short link that doesn't work. */
export function unavailableLinkPage(status: number, detail: string): string {
  return status === 404
    ? messagePage("Link not found", "Check the spelling. The link may have been deleted.")
    : messagePage("This link is no longer available", detail);
}

/** Renders where a short link leads. Continuing follows the link, which counts as a click. */
export function linkPreviewPage({ slug, url, title, createdAt, rules }: LinkPreview): string {
  const { host } = new URL(url);
  return page(
    `Link to ${host}`,
    html`<h1>This link leads to <bdi>${breakable(host)}</bdi></h1>
${title !== null && html`<p><bdi>${title}</bdi></p>`}
<p class="destination"><bdi>${withStrongHost(url, host)}</bdi></p>
${
  rules.length > 0 &&
  html`<p>Some visitors go elsewhere:</p>
<dl class="facts">${rules.map((rule) => html`<dt>${describeConditions(rule.if)}</dt><dd class="destination"><bdi>${withStrongHost(rule.url, new URL(rule.url).host)}</bdi></dd>`)}</dl>`
}
<p class="hint">Created ${day(createdAt)}. Continue only if you trust the destination.</p>
<p><a class="button" href="/${slug}">${rules.length > 0 ? "Continue" : `Continue to ${host}`}</a></p>`,
  );
}

/** Emphasizes the host of a URL that the URL parser returned, which is where a browser connects to. */
function withStrongHost(url: string, host: string): Html {
  const start = url.indexOf("//") + 2;
  return html`${url.slice(0, start)}<strong>${breakable(host)}</strong>${breakable(url.slice(start + host.length))}`;
}
