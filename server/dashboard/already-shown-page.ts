import { type Html, html } from "../html.ts";
import { linkButton } from "./controls.ts";

/** Something that a page showed once. */
export type OnceShown = {
  kind: "secret" | "link";
  /** Its full name, with an article. */
  name: string;
  /** What to do without a copy. */
  advice: string;
  back: Way;
  /** Where to get a new one. */
  renew?: Way;
};

type Way = { href: string; text: string };

/** Says that a secret can't be shown again, and what to do next. */
export function alreadyShown({ name, advice, back, renew }: OnceShown): Html {
  return html`<div class="panel">
<p>${name} is shown only once, right after it’s created, and can’t be shown again. ${advice}</p>
<div class="actions">${linkButton(back.href, back.text)}${renew ? linkButton(renew.href, renew.text, "quiet") : html``}</div>
</div>`;
}
