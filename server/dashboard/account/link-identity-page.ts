import { html } from "../../ui/html.ts";
import { page } from "../../ui/page.ts";

/** Renders the page that sends the user to the identity provider to link an identity. */
export function linkIdentityPage(provider: string, href: string): string {
  return page(
    `Link ${provider}`,
    html`<h1>Link ${provider}</h1>
<p>Sign in to ${provider} to link it to your account. You can then sign in here with ${provider}.</p>
<p><a class="button" href="${href}">Continue to ${provider}</a></p>
<p class="hint"><a href="/dashboard/account">Back to account</a></p>`,
  );
}
