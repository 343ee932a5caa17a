import type { Token, Tokens } from "marked";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { pageReader, replaceUrls } from "../../docs/guides.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { copyButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathTo } from "../access.ts";
import { sendJson, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { CLIENT, clientOf } from "./tabs.ts";

export type Snippet = { name: string; title: string; note: string; code: string };

/** The headings of the examples. */
const EXAMPLES = {
  curl: "curl",
  client: "TypeScript (@linkgate/client)",
  typescript: "TypeScript (openid-client)",
  python: "Python (Authlib)",
  mcp: "MCP (TypeScript SDK)",
};
const INSECURE = "\n  undefined,\n  { execute: [client.allowInsecureRequests] },";

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

const readDocument = pageReader("clients.md");

function snippetsOf(urls: PublicUrls, clientId: string): Snippet[] {
  return Object.entries(EXAMPLES).map(([name, title]) => {
    const section = readDocument(title);
    const { text } = section.find(({ type }) => type === "paragraph") as Tokens.Paragraph;
    const code = exampleIn(section, urls, clientId);
    const note = replaceUrls(text.replaceAll("`", ""), urls);
    return { name, title, note, code: urls.base.startsWith("http:") ? code : code.replace(INSECURE, "") };
  });
}

/** Returns the first example of a section of the documentation, for this server and a client. */
export function exampleIn(section: Token[], urls: PublicUrls, clientId: string): string {
  const { text } = section.find(({ type }) => type === "code") as Tokens.Code;
  const local = text.replaceAll("https://links.example", "http://localhost:3000");
  return replaceUrls(local, urls).replaceAll("lgc_…", () => clientId);
}

export function snippetFigures(snippets: Snippet[], heading: (title: string) => Html): Html {
  return html`${snippets.map(
    ({ name, title, note, code }) => html`<figure class="snippet" id="${name}">
<figcaption><div>${heading(title)}<p class="soft">${note}</p></div>${copyButton(code, title)}</figcaption>
<pre tabindex="0" role="region" aria-label="${title}"><code>${code}</code></pre>
</figure>
`,
  )}`;
}
