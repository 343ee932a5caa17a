import { copyButton, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Snippet } from "./snippets.ts";

/** Renders the snippets, each with a copy button. */
export function quickStartPage(organizationId: string, snippets: Snippet[]): Html {
  return html`<p class="panel">These examples act for the organization itself. To connect Claude, Cursor or another AI client that a user signs in to, see <a href="${sectionPath(organizationId, "connect")}">Connect</a>. It needs no secret.</p>
${snippets.map(
  ({ name, title, note, code }) => html`<figure class="snippet" id="${name}">
<figcaption><div><h2>${title}</h2><p class="soft">${note}</p></div>${copyButton(code, title)}</figcaption>
<pre tabindex="0" role="region" aria-label="${title}"><code>${code}</code></pre>
</figure>
`,
)}${linkButton(sectionPath(organizationId, "client"), "Back to API access", "quiet")}`;
}
