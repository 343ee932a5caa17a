import { linkButton } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";

/** A secret or link that a page showed once. */
export type ShownSecret = {
  kind: "secret" | "link" | "list";
  back: Link;
  /** Where to create a new one. */
  renew?: Link;
} & (ShownForever | ShownAgain);

type ShownForever = {
  /** Its name with an article, such as “A client secret”. */
  name: string;
  /** What to do if it wasn't copied. */
  advice: string;
};
type ShownAgain = {
  /** Where it can be seen. */
  explanation: string;
};

type Link = { href: string; text: string };

/** Says that a secret isn't shown again here, and what to do next. */
export function alreadyShownPage(shown: ShownSecret): Html {
  const { back, renew } = shown;
  const explanation =
    "explanation" in shown
      ? shown.explanation
      : `${shown.name} is shown only once, right after it’s created, and can’t be shown again. ${shown.advice}`;
  return html`<div class="panel">
<p>${explanation}</p>
<div class="actions">${linkButton(back.href, back.text)}${renew ? linkButton(renew.href, renew.text, "quiet") : html``}</div>
</div>`;
}
