import { html } from "../../ui/html.ts";
import { page } from "../../ui/page.ts";

/** Renders the page that asks before a link on another site replaces the session. */
export function confirmReplacementPage(provider: string, username: string, href: string): string {
  const title = `Continue with ${provider}?`;
  return page(
    title,
    html`<h1>${title}</h1>
<p>You’re already signed in as <strong>${username}</strong>. If you continue, you may be signed in as someone else.</p>
<p><a class="button" href="${href}">Continue with ${provider}</a></p>
<p><a class="button quiet" href="/dashboard">Stay signed in as ${username}</a></p>`,
  );
}
