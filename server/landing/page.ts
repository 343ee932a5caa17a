import { copyable, linkButton } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { document } from "../ui/page.ts";

const HEADLINE = "Short links for your team, your apps and your agents";
const DESCRIPTION =
  "linkgate creates short links and counts every click. Manage them in the dashboard, through a REST API or with an AI assistant.";

type Landing = {
  /** Where the page is served. */
  url: string;
  apiUrl: string;
  mcpUrl: string;
  /** The OAuth metadata of this server. */
  discoveryPath: string;
  /** Absent on a server without sign-in. */
  entry?: { mayRegister: boolean } | undefined;
};

/** Renders what linkgate is and where to start. */
export function landingPage({ url, apiUrl, mcpUrl, discoveryPath, entry }: Landing): string {
  return document(
    "Short links with an API",
    html`<body class="dashboard landing">
<header class="top"><span class="brand"><img src="/assets/icon.svg" alt="" width="24" height="24"> linkgate</span></header>
<main>
<h1>${HEADLINE}</h1>
<p class="lead">${DESCRIPTION}</p>
<div class="actions">${entry ? entryButtons(entry) : html``}${linkButton("/docs", "API documentation", entry ? "quiet" : "primary")}</div>
<ul class="tiles">
${tile("Links", "Custom or random slugs, expiry dates, click limits, tags and QR codes. Analytics by day, referrer and country.")}
${tile("API and webhooks", "A REST API with idempotent requests, described by OpenAPI, and signed webhooks that are retried for three days.")}
${tile("MCP", "Connect an AI assistant to the MCP endpoint. It can do only what you allow, and you can revoke access at any time.")}
</ul>
<section class="panel"><h2>For developers</h2>
<dl class="facts">
<dt>REST API</dt><dd>${copyable(apiUrl, "the REST API URL")}</dd>
<dt>MCP endpoint</dt><dd>${copyable(mcpUrl, "the MCP endpoint URL")}</dd>
<dt>OAuth discovery</dt><dd><a href="${discoveryPath}">${discoveryPath}</a></dd>
<dt>OpenAPI</dt><dd><a href="/v1/openapi.json">/v1/openapi.json</a></dd>
</dl></section>
</main>
</body>`,
    html`
<meta name="description" content="${DESCRIPTION}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="linkgate">
<meta property="og:title" content="${HEADLINE}">
<meta property="og:description" content="${DESCRIPTION}">
<meta property="og:url" content="${url}">
<link rel="stylesheet" href="/assets/dashboard.css">
<script src="/assets/app.js" defer></script>`,
  );
}

function entryButtons({ mayRegister }: { mayRegister: boolean }): Html {
  return html`${linkButton("/auth/login", "Sign in")}${mayRegister ? linkButton("/auth/register", "Create account", "quiet") : html``}`;
}

function tile(title: string, text: string): Html {
  return html`<li class="panel"><h2>${title}</h2><p class="soft">${text}</p></li>`;
}
