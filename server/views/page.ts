import { type Html, html } from "./html.ts";

/** A whole page. Every value in it is escaped; nothing in it comes from another origin. */
export function page(title: string, body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · linkgate</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">
</head>
<body>
<main class="card">
<p class="brand">linkgate</p>
${body}
</main>
</body>
</html>
`.toString();
}

/** A page that only says something. */
export function messagePage(title: string, text: string): string {
  return page(title, html`<h1>${title}</h1><p>${text}</p>`);
}

/** A message above a form; nothing when there is none. */
export function alert(message: string | undefined): Html {
  return message ? html`<p class="alert" role="alert">${message}</p>` : html``;
}
