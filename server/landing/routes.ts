import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { isAt, mount, requireRead } from "../../resources/http/routing.ts";
import { HOME, seeOther } from "../http/redirects.ts";
import { prefersHtml } from "../http/request-body.ts";
import { METADATA_PATH } from "../oauth-endpoints.ts";
import { assetAddress } from "../ui/asset-files.ts";
import { copyable, linkButton } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { BRAND, document } from "../ui/page.ts";

const HEADLINE = "Short links for your team, your apps and your agents";
const DESCRIPTION =
  "linkgate creates short links and counts every click. Manage them in the dashboard, through a REST API or with an AI assistant.";

// `npm run pictures` takes it.
const PICTURE = "The Links page of the dashboard: short links with their titles, tags and clicks";

type Entry = { isSignedIn(ctx: Context): Promise<boolean>; mayRegister: boolean };

/**
 * A separate `SHORT_URL` host keeps its 404: visitors of short links needn't learn where the dashboard is. `entry` is
 * undefined without sign-in.
 */
export function landing(urls: PublicUrls, entry?: Entry): Middleware {
  const links = linksOf(urls);
  const page = landingPage(urls, entry);
  return mount(isAt(`${urls.base}/`), [
    requireRead,
    async function serveLanding(ctx) {
      ctx.set("Cache-Control", "no-store"); // depends on the session
      if (!prefersHtml(ctx)) {
        ctx.body = links;
      } else if (await entry?.isSignedIn(ctx)) {
        seeOther(ctx, HOME);
      } else {
        ctx.type = "html";
        ctx.body = page;
      }
    },
  ]);
}

function linksOf({ base, api, mcp }: PublicUrls) {
  return {
    name: "linkgate",
    documentation_url: `${base}/docs`,
    openapi_url: `${api}/openapi.json`,
    api_url: api,
    mcp_url: mcp,
    authorization_server: base,
    authorization_server_metadata_url: base + METADATA_PATH,
    protected_resource_metadata_url: `${base}/.well-known/oauth-protected-resource`,
  };
}

function landingPage({ base, api, mcp }: PublicUrls, entry: Entry | undefined): string {
  // A server without sign-in has only the second metadata, which names the authorization server.
  const discoveryPath = entry ? METADATA_PATH : "/.well-known/oauth-protected-resource";
  return document(
    "Short links with an API",
    html`<body class="dashboard landing">
<header class="top"><span class="brand">${BRAND}</span></header>
<main>
<div class="hero">
<div><h1>${HEADLINE}</h1>
<p class="lead">${DESCRIPTION}</p>
<div class="actions">${entry && entryButtons(entry)}${linkButton("/docs", "Documentation", entry ? "quiet" : "primary")}</div></div>
<picture><source srcset="${assetAddress("links-dark.webp")}" media="(prefers-color-scheme: dark)"><img src="${assetAddress("links-light.webp")}" width="900" height="585" alt="${PICTURE}"></picture>
</div>
<ul class="tiles">
${tile("Links", "Custom or random slugs, expiry dates, click limits, tags and QR codes. Analytics by day, referrer and country.")}
${tile("API and webhooks", "A REST API with idempotent requests, described by OpenAPI, and signed webhooks that are retried for three days.")}
${tile("MCP", "Connect an AI assistant to the MCP endpoint. It can do only what you allow, and you can revoke access at any time.")}
</ul>
<section class="panel"><h2>For developers</h2>
<dl class="facts">
<dt>REST API</dt><dd>${copyable(api, "the REST API URL")}</dd>
<dt>MCP endpoint</dt><dd>${copyable(mcp, "the MCP endpoint URL")}</dd>
<dt>OAuth discovery</dt><dd><a href="${discoveryPath}">${discoveryPath}</a></dd>
<dt>OpenAPI</dt><dd><a href="/v1/openapi.json">/v1/openapi.json</a></dd>
</dl></section>
</main>
</body>`,
    {
      extraHead: html`
<meta name="description" content="${DESCRIPTION}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="linkgate">
<meta property="og:title" content="${HEADLINE}">
<meta property="og:description" content="${DESCRIPTION}">
<meta property="og:url" content="${base}/">
<link rel="stylesheet" href="${assetAddress("dashboard.css")}">
<script src="${assetAddress("app.js")}" defer></script>`,
    },
  );
}

function entryButtons({ mayRegister }: Entry): Html {
  return html`${mayRegister && linkButton("/auth/register", "Create account")}${linkButton("/auth/login", "Sign in", mayRegister ? "quiet" : "primary")}`;
}

function tile(title: string, text: string): Html {
  return html`<li class="panel"><h2>${title}</h2><p class="soft">${text}</p></li>`;
}
