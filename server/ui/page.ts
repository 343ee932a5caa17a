import { createHash } from "node:crypto";
import { assetAddress, BASE_CSS, ICON } from "./asset-files.ts";
import { describing } from "./controls.ts";
import { type Html, html, trusted } from "./html.ts";

const LINKED = html`<link rel="icon" href="${assetAddress("icon.svg")}" type="image/svg+xml">
<link rel="preload" href="${assetAddress("inter.woff2")}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${assetAddress("style.css")}">`;
const EMBEDDED = html`<style>${trusted(BASE_CSS)}</style>`;

/** The source expression of the embedded style sheet, for `style-src` (CSP Level 3 §2.3.1). */
export const EMBEDDED_STYLE = `'sha256-${createHash("sha256").update(BASE_CSS).digest("base64")}'`;

type DocumentOptions = { extraHead?: Html; style?: Html | undefined; owner?: string | undefined };

/** Renders an HTML document. Every value is escaped, and nothing is loaded from another origin. */
export function document(
  title: string,
  body: Html,
  { extraHead = html``, style = LINKED, owner }: DocumentOptions = {},
): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${owner ? `${owner} · ${title}` : `${title} · linkgate`}</title>
${style}${extraHead}
</head>
${body}
</html>
`.toString();
}

/** The name of the service with its mark. */
export const BRAND = html`${trusted(ICON)}linkgate`;

export function page(title: string, body: Html, { brand = BRAND, style, owner }: PageLook = {}): string {
  return document(
    title,
    html`<body>
<main class="card">
<p class="brand">${brand}</p>
${body}
</main>
</body>`,
    { style, owner },
  );
}

type PageLook = { brand?: Html; style?: Html | undefined; owner?: string | undefined };

/** How a page looks that names its owner instead of the service. Hosts of domains have no style sheet to load. */
export function lookOf({ name, isDomain }: { name: string; isDomain: boolean }): PageLook {
  return { brand: html`<bdi>${name}</bdi>`, owner: name, style: isDomain ? EMBEDDED : undefined };
}

export type PageLink = { href: string; text: string };

/** The way on from a page of an authorization that can't continue. */
export const HOME: PageLink = { href: "/", text: "Go to the home page" };

export function messagePage(title: string, text: string, next?: PageLink, look?: PageLook): string {
  return page(title, message(title, text, next), look);
}

/** Like `messagePage`, for hosts that don't serve the style sheet. Needs `EMBEDDED_STYLE` in the content security policy. */
export function standalonePage(title: string, text: string, next: PageLink): string {
  return messagePage(title, text, next, { brand: html`linkgate`, style: EMBEDDED });
}

function message(title: string, text: string, next?: PageLink): Html {
  return html`<h1>${title}</h1><p>${text}</p>${next && linkTo(next)}`;
}

function linkTo({ href, text }: PageLink): Html {
  return html`<p><a class="button quiet" href="${href}">${text}</a></p>`;
}

/** The redirect URI of an app with a response, and the host or scheme that names it. */
export type AppLink = { href: string; name: string };

/** `reason` is for the app's developer. `next` is where the app expects the error. */
export function authorizationErrorPage(reason: string, next?: AppLink): string {
  return page(
    "Access request failed",
    html`<h1>Access request failed</h1>
<p>The app sent an invalid request, so nothing was shared with it. Go back to the app and try again.</p>
<p class="hint">If this keeps happening, send this error to the app’s developer: ${reason}</p>
${next ? returnToApp(next) : linkTo(HOME)}`,
  );
}

function returnToApp({ href, name }: AppLink): Html {
  return html`<p>You can also return to the app at <strong><bdi>${name}</bdi></strong>. Continue only if you trust it.</p>
${linkTo({ href, text: `Continue to ${name}` })}`;
}

export function expiredRegistrationPage(): string {
  return messagePage(
    "Registration expired",
    "This app registered more than 90 days ago. Remove this server from the app, then add it again to connect.",
    HOME,
  );
}

export function alert(message: string | undefined, id?: string): Html {
  if (!message) return html``;
  return html`<p class="alert bad" role="alert"${id && html` id="${id}"`}>${message}</p>`;
}

/** Links a field to its hint and to the error above the form, for screen readers. */
export function describedBy(error: string | undefined, hint?: string): Html {
  return describing([error && "error", hint], error);
}
