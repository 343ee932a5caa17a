import { hidden } from "./fields.ts";
import { type Html, html } from "./html.ts";

/** A form whose button uses a passkey. */
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
  className = "passkey",
): Html {
  return html`<form method="post" action="${action}" class="${className}" data-passkey="${ceremony}" data-options="${options}" hidden>
${Object.entries(fields).map(([name, value]) => hidden(name, value))}${hidden("passkey", "")}
${content}
</form>`;
}

/** Renders the reference to the script that talks to the authenticator. */
export function passkeyScript(): Html {
  return html`<script src="/assets/passkeys.js" defer></script>`;
}
