import type { Snippet } from "../../dashboard/snippets.ts";
import { type Html, html } from "../html.ts";
import { copyButton, linkButton } from "./controls.ts";
import { sectionPath } from "./layout.ts";

/** The snippets, each with a button that copies it. */
export function quickStartPage(organizationId: string, snippets: Snippet[]): Html {
  return html`${snippets.map(
    ({ name, title, note, code }) => html`<figure class="snippet" id="${name}">
<figcaption><div><h2>${title}</h2><p class="soft">${note}</p></div>${copyButton(code, title)}</figcaption>
<pre tabindex="0" role="region" aria-label="${title}"><code>${code}</code></pre>
</figure>
`,
  )}${linkButton(sectionPath(organizationId, "client"), "Back to API access", "quiet")}`;
}
