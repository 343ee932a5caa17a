import { textFieldOf } from "../../http/request-body.ts";
import { field } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";

// A host with a dot, then a port, a path, a query, a fragment, or nothing.
const WITHOUT_SCHEME = /^[^./?#:@\s]+\.[^/?#:@\s]+(?::\d+)?(?:[/?#]|$)/;

/** Returns the URL that a user typed, with https:// if it starts with a host, as browsers understand it. */
export function toUrl(typed: unknown): string {
  const text = textFieldOf(typed).trim();
  return WITHOUT_SCHEME.test(text) ? `https://${text}` : text;
}

/** Renders a field for a URL whose scheme may be missing, which `type="url"` would reject. */
export function urlField({
  isRequired = false,
  hint,
  ...options
}: Parameters<typeof field>[0] & { isRequired?: boolean }): Html {
  return field({
    ...options,
    hint: [hint, "If you leave out the scheme, https:// is added."].filter(Boolean).join(" "),
    attributes: html`inputmode="url" maxlength="2048" placeholder="https://example.com/page" autocomplete="off" autocapitalize="none" spellcheck="false"${isRequired && html` required`}`,
  });
}
