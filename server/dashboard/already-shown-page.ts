import { linkButton } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";

/** A secret or link that a page showed once. */
export type ShownSecret = {
  kind: "secret" | "link";
  /** Its name with an article, such as “A client secret”. */
  name: string;
  /** What to do if it wasn't copied. */
  advice: string;
  back: Link;
  /** Where to create a new one. */
  renew?: Link;
};

type Link = { href: string; text: string };

/** Says that a secret can't be shown again, and what to do next. */
export function alreadyShownPage({ name, advice, back, renew }: ShownSecret): Html {
  return html`<div class="panel">
<p>${name} is shown only once, right after it’s created, and can’t be shown again. ${advice}</p>
<div class="actions">${linkButton(back.href, back.text)}${renew ? linkButton(renew.href, renew.text, "quiet") : html``}</div>
</div>`;
}
