import { MANAGERS } from "../../../resources/access/scopes.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { copyButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathTo } from "../access.ts";
import { sendJson, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { type Snippet, snippetsOf } from "./snippets.ts";
import { CLIENT, clientOf } from "./tabs.ts";

export const quickStartRoutes: RouteModule = (router, { storage, urls, allow }) => {
  router.get(`${CLIENT}/quick-start`, allow(...MANAGERS), async (ctx) => {
    const { clientId } = await clientOf(ctx, storage.clients);
    const snippets = snippetsOf(urls, clientId);
    if (!prefersHtml(ctx)) return sendJson(ctx, { client_id: clientId, snippets });
    const intro = "Set the environment variable CLIENT_SECRET, then run any of these examples.";
    const body = html`<p class="panel">These examples act for the organization itself. To connect Claude, VS Code or another AI client that a user signs in to, see <a href="${pathTo(ctx, "connect")}">Connect</a>. No secret is needed.</p>
${snippetFigures(snippets, (title) => html`<h2>${title}</h2>`)}${linkButton(pathTo(ctx, "client"), "Back to API access", "quiet")}`;
    showPage(ctx, { title: "Quick start", intro, section: "client", body });
  });
};

export function snippetFigures(snippets: Snippet[], heading: (title: string) => Html): Html {
  return html`${snippets.map(
    ({ name, title, note, code }) => html`<figure class="snippet" id="${name}">
<figcaption><div>${heading(title)}<p class="soft">${note}</p></div>${copyButton(code, title)}</figcaption>
<pre tabindex="0" role="region" aria-label="${title}"><code>${code}</code></pre>
</figure>
`,
  )}`;
}
