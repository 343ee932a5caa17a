import type { Context } from "koa";
import type { LinkPages, Site } from "../../resources/links/redirect.ts";
import { describeConditions } from "../ui/conditions.ts";
import { breakable, day } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { alert, describedBy, lookOf, messagePage, page } from "../ui/page.ts";
import { titleOf } from "./error-pages.ts";
import { allowFormRedirects } from "./security-headers.ts";

/** The pages of short links, which show whose they are instead of the name of the service. */
export const linkPages: LinkPages = {
  preview: renderPreview,
  card: renderCard,
  error: renderError,
  askForPassword: showPasswordPage,
};

const ROOT = [
  "There’s no page here",
  "This domain is for short links only. Open the full link that you received.",
];
const MISSING = ["Link not found", "Check the spelling. The link may have been deleted."];

function renderError({ status, path }: Context, detail: string, site: Site): string {
  const missing = path === "/" ? ROOT : MISSING;
  const gone = status === 410 ? "This link is no longer available" : titleOf(status);
  const [title = "", text = ""] = status === 404 ? missing : [gone, detail];
  return messagePage(title, text, undefined, lookOf(site));
}

const PROTECTED = "This link is password-protected";

/** Shows the form that asks for the password of a link. It is sent to the URL of the page, whose query stays. */
function showPasswordPage(ctx: Context, error: string | undefined, site: Site): void {
  // The policy of domains has no rule for forms.
  if (!site.isDomain) allowFormRedirects(ctx);
  ctx.type = "html";
  const form = html`${alert(error, "error")}<form method="post">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="off" maxlength="128" required autofocus${describedBy(error)}>
<button type="submit">Continue</button>
</form>`;
  ctx.body = protectedPage("To continue, enter the password that came with the link.", form, site);
}

function protectedPage(text: string, control: Html, site: Site): string {
  return page(PROTECTED, html`<h1>${PROTECTED}</h1>\n<p>${text}</p>\n${control}`, lookOf(site));
}

/** Renders where a short link leads. Continuing follows the link, which counts as a click. */
function renderPreview(preview: Parameters<LinkPages["preview"]>[0], site: Site): string {
  if ("hasPassword" in preview) {
    const enter = html`<p><a class="button" href="/${preview.slug}">Enter the password</a></p>`;
    return protectedPage("Enter the password to see where it leads.", enter, site);
  }
  const { slug, url, title, createdAt, rules } = preview;
  const { host } = new URL(url);
  return page(
    `Link to ${host}`,
    html`<h1>This link leads to <bdi>${breakable(host)}</bdi></h1>
${title !== null && html`<p><bdi>${title}</bdi></p>`}
<p class="destination"><bdi>${withStrongHost(url, host)}</bdi></p>
${
  rules.length > 0 &&
  html`<p>Some visitors are sent to another page:</p>
<dl class="facts">${rules.map((rule) => html`<dt>${describeConditions(rule.if)}</dt><dd class="destination"><bdi>${withStrongHost(rule.url, new URL(rule.url).host)}</bdi></dd>`)}</dl>`
}
<p class="hint">Created ${day(createdAt)}. Continue only if you trust the destination.</p>
<p><a class="button" href="/${slug}">${rules.length > 0 ? "Continue" : `Continue to ${host}`}</a></p>`,
    lookOf(site),
  );
}

/** Renders the card of a link. Programs read its tags; people who open it are sent on. */
function renderCard({ card, shortUrl, location }: Parameters<LinkPages["card"]>[0]): string {
  const { title, description, image_url: image } = card;
  return html`<!doctype html>
<html lang="en" prefix="og: https://ogp.me/ns#">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<meta property="og:type" content="website">
<meta property="og:url" content="${shortUrl}">
<meta property="og:title" content="${title}">
${
  description !== null &&
  html`<meta property="og:description" content="${description}">
<meta name="description" content="${description}">`
}
${image !== null && html`<meta property="og:image" content="${image}">`}
<meta name="twitter:card" content="${image === null ? "summary" : "summary_large_image"}">
<meta http-equiv="refresh" content="0; url=${location}">
</head>
<body>
<p><a href="${location}">Continue to ${new URL(location).host}</a></p>
</body>
</html>
`.toString();
}

/** Emphasizes the host of a URL that the URL parser returned, which is where a browser connects to. */
function withStrongHost(url: string, host: string): Html {
  const start = url.indexOf("//") + 2;
  return html`${url.slice(0, start)}<strong>${breakable(host)}</strong>${breakable(url.slice(start + host.length))}`;
}
