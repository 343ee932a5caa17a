import { html } from "./html.ts";
import { page } from "./page.ts";

/** The last step before an identity is linked, which is taken at the identity provider. */
export function linkPage(provider: string, href: string): string {
  return page(
    `Link ${provider}`,
    html`<h1>Link ${provider}</h1>
<p>You will be asked to sign in at ${provider}. From then on you can sign in here with it.</p>
<p><a class="button" href="${href}">Continue to ${provider}</a></p>
<p class="hint"><a href="/dashboard/account">Back to your account</a></p>`,
  );
}
