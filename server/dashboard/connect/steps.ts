import { listing, prose } from "../../docs/prose.ts";
import { copyButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Step } from "./host.ts";

/** Renders the steps of a guide; `label` tells its blocks of code apart from those of other guides. */
export function stepList(label: string, steps: Step[]): Html {
  return html`<ol class="steps">${steps.map(
    ({ text, code, link }, index) => html`<li><p>${prose(text)}</p>
${link ? linkButton(link.href, link.text) : html``}${code ? codeBlock(`${label}, step ${index + 1}`, code) : html``}</li>
`,
  )}</ol>`;
}

function codeBlock(label: string, code: string): Html {
  return html`<div class="code">${listing(label, code)}${copyButton(code, label)}</div>`;
}
