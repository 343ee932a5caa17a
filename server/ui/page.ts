import { type Html, html } from "./html.ts";

/** A whole page. Every value in it is escaped; nothing in it comes from another origin. */
export function document(title: string, body: Html, extraHead: Html = html``): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · linkgate</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">${extraHead}
</head>
${body}
</html>
`.toString();
}

/** A page of one card: what stands between a person and where he or she wants to go. */
export function page(title: string, body: Html): string {
  return document(
    title,
    html`<body>
<main class="card">
<p class="brand">linkgate</p>
${body}
</main>
</body>`,
  );
}

/** Where to go on from a page: an address of ours. */
export type Way = { href: string; text: string };

/** A page that only says something, and where to go on. */
export function messagePage(title: string, text: string, way?: Way): string {
  const link = way ? html`<p><a class="button quiet" href="${way.href}">${way.text}</a></p>` : html``;
  return page(title, html`<h1>${title}</h1><p>${text}</p>${link}`);
}

/** A refused authorization: a sentence for the person, and the reason for the makers of the app. */
export function refusedPage(reason: string): string {
  return page(
    "This did not work",
    html`<h1>This did not work</h1>
<p>An app asked for something that cannot be done, so nothing was shared with it. Go back to the app and try again.</p>
<p class="hint">If it happens again, its makers will want to know the reason: ${reason}</p>`,
  );
}

/** A message above a form; nothing when there is none. */
export function alert(message: string | undefined, id?: string): Html {
  if (!message) return html``;
  return html`<p class="alert" role="alert"${id ? html` id="${id}"` : html``}>${message}</p>`;
}

/** Ties a field to what is said about it: the hint below it, and the error above the form. */
export function describedBy(error: string | undefined, hint?: string): Html {
  const ids = [error && "error", hint].filter(Boolean).join(" ");
  if (!ids) return html``;
  return html` aria-describedby="${ids}"${error ? html` aria-invalid="true"` : html``}`;
}
