import { copyButton, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Snippet } from "./snippets.ts";

/** Renders the page of snippets. */
export function quickStartPage(organizationId: string, snippets: Snippet[]): Html {
  return html`<p class="panel">These examples act for the organization itself. To connect Claude, VS Code or another AI client that a user signs in to, see <a href="${sectionPath(organizationId, "connect")}">Connect</a>. No secret is needed.</p>
${snippetFigures(snippets, (title) => html`<h2>${title}</h2>`)}${linkButton(sectionPath(organizationId, "client"), "Back to API access", "quiet")}`;
}

/** Renders snippets, each with a heading and a copy button. */
export function snippetFigures(snippets: Snippet[], heading: (title: string) => Html): Html {
  return html`${snippets.map(
    ({ name, title, note, code }) => html`<figure class="snippet" id="${name}">
<figcaption><div>${heading(title)}<p class="soft">${note}</p></div>${copyButton(code, title)}</figcaption>
<pre tabindex="0" role="region" aria-label="${title}"><code>${code}</code></pre>
</figure>
`,
  )}`;
}
