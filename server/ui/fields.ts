import { type Html, html } from "./html.ts";
import { describedBy } from "./page.ts";

/** Renders the username and password fields; the first empty one has the focus. */
export function credentials({
  username = "",
  error,
}: {
  username?: string;
  error?: string | undefined;
}): Html {
  return html`<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required${autofocus(!username)}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${describedBy(error)}${autofocus(Boolean(username))}>`;
}

/** Returns the attribute that focuses a field when the page opens. */
export function autofocus(isNext: boolean): Html {
  return isNext ? html` autofocus` : html``;
}

/** Renders a hidden field. */
export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

/** The single sign-on option of the sign-in page. */
export type SsoOption = { name: string; href: string; isUnavailable: boolean };

/** Renders the single sign-on button, or says that the identity provider is unavailable. */
export function ssoButton(external: SsoOption | undefined): Html {
  if (!external) return html``;
  const { name, href, isUnavailable: isAway } = external;
  if (isAway) return html`<p class="hint">${name} is unavailable right now. Try again in a minute.</p>`;
  return html`<p><a class="button quiet" href="${href}">Continue with ${name}</a></p>`;
}
