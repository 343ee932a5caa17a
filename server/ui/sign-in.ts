import { assetAddress } from "./asset-files.ts";
import { hidden } from "./controls.ts";
import { type Html, html } from "./html.ts";
import { describedBy } from "./page.ts";

const AUTOFOCUS = html` autofocus`;

/** Renders the username and password fields; the first empty one has the focus. */
export function credentials({
  username = "",
  error,
}: {
  username?: string;
  error?: string | undefined;
}): Html {
  return html`<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required${!username && AUTOFOCUS}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${describedBy(error)}${username && AUTOFOCUS}>`;
}

export type SsoOption = { name: string; href: string; isUnavailable: boolean };

export function ssoButton(external: SsoOption | undefined): Html {
  if (!external) return html``;
  const { name, href, isUnavailable } = external;
  if (isUnavailable)
    return html`<p class="hint">${name} is unavailable right now. Try again in a minute.</p>`;
  return html`<p><a class="button quiet" href="${href}">Continue with ${name}</a></p>`;
}

export type PasskeyOption = {
  action: string;
  /** What the browser passes to the authenticator, as JSON. */
  options: string;
  fields: Record<string, string>;
};

/** Renders the button that signs in with a passkey. The script reveals it in browsers that support passkeys. */
export function passkeyButton(option: PasskeyOption | undefined, text = "Sign in with a passkey"): Html {
  if (!option) return html``;
  return html`${passkeyForm("get", option, html`<button type="submit" class="quiet">${text}</button>`)}${passkeyScript()}`;
}

/** Renders a form that the script submits with the response of the authenticator. */
export function passkeyForm(
  ceremony: "create" | "get",
  { action, options, fields }: PasskeyOption,
  content: Html,
  className?: string,
): Html {
  return html`<form method="post" action="${action}"${className && html` class="${className}"`} data-passkey="${ceremony}" data-options="${options}">
${Object.entries(fields).map(([name, value]) => hidden(name, value))}${hidden("passkey", "")}
${content}
</form>`;
}

/** Renders the reference to the script that talks to the authenticator. */
export function passkeyScript(): Html {
  return html`<script src="${assetAddress("passkeys.js")}" defer></script>`;
}

export type ShownInvitation = {
  organizationName: string;
  role: string;
  /** The username of the member who created it. Null for the operator. */
  inviter: string | null;
};

export function invitationSentence({ organizationName, role, inviter }: ShownInvitation): Html {
  const organization = html`<strong><bdi>${organizationName}</bdi></strong> as ${role === "member" ? "a" : "an"} <strong>${role}</strong>`;
  if (inviter === null) return html`You’re invited to join ${organization}.`;
  return html`<strong><bdi>${inviter}</bdi></strong> invited you to join ${organization}.`;
}
