import { readFileSync } from "node:fs";
import { AUDIT_LOG_DAYS } from "../../adapters/events/retention.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../../resources/access/scopes.ts";
import { limitsOf, PLANS, type Plan } from "../../resources/plans.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/webhooks/event-schemas.ts";
import { TIMEOUTS } from "../../resources/webhooks/send.ts";
import { retentionOf } from "../settings/lifetimes.ts";
import { type Html, html } from "../ui/html.ts";
import { table } from "../ui/table.ts";
import { tokenScript } from "./examples.ts";
import { codeLink, listing, pretty } from "./prose.ts";
import { schemaLink } from "./schema.ts";

const SCRIPT = readFileSync(new URL("../../docs/verify-audit-log.mjs", import.meta.url), "utf8");

/** A chapter about what all operations have in common. */
export type Chapter = { id: string; title: string; body: Html };

/** Returns the chapters that precede the operations. */
export function guide(urls: PublicUrls, problem: unknown): Chapter[] {
  return [
    { id: "start", title: "Introduction", body: introduction(urls) },
    { id: "authentication", title: "Authentication", body: authentication(urls) },
    { id: "errors", title: "Errors", body: errors(problem) },
    { id: "lists", title: "Pagination", body: pagination(urls) },
    { id: "conditional-requests", title: "Conditional requests", body: conditionalRequests() },
    { id: "idempotency", title: "Idempotency", body: idempotency() },
    { id: "rate-limits", title: "Rate limits", body: rateLimits() },
    { id: "click-analytics", title: "Click analytics", body: clickAnalytics() },
    { id: "receiving", title: "Receiving webhooks", body: receivingWebhooks() },
    { id: "audit-log", title: "Audit log", body: auditLog() },
    { id: "changes", title: "Versioning", body: versioning() },
  ];
}

function introduction({ api, mcp, base, short }: PublicUrls): Html {
  return html`<p>Manage your organization’s short links, clicks and webhooks. Requests and responses are UTF-8 JSON with
<code>snake_case</code> names, RFC 3339 timestamps in UTC, and IDs with a prefix, such as <code>lnk_</code>.</p>
<dl class="facts">
<dt>REST API</dt><dd><code>${api}</code></dd>
<dt>MCP endpoint</dt><dd><code>${mcp}</code></dd>
<dt>Short links</dt><dd><code>${short}</code></dd>
<dt>API description</dt><dd><a href="/v1/openapi.json">OpenAPI 3.1</a>, for generating clients</dd>
<dt>AI clients</dt><dd>The <a href="${base}/dashboard">dashboard</a> explains how to connect each one, under Connect</dd>
<dt>Client ID and secret</dt><dd>In the <a href="${base}/dashboard">dashboard</a> under API access, on the Growth and Premium plans</dd>
</dl>`;
}

function authentication({ base, api, mcp }: PublicUrls): Html {
  return html`<p>Every request except the OpenAPI document needs an OAuth 2.0 access token:
<code>Authorization: Bearer &lt;token&gt;</code>. To act for your own organization, get a token with client credentials.
It expires after one hour. To bind a token to a key, use DPoP (RFC 9449): send a proof with the token request, and then
<code>Authorization: DPoP &lt;token&gt;</code> with a new proof for each call.</p>
${listing("Get a token", tokenScript(base, `"\${CLIENT_ID:?}"`))}
<p>Apps that act for a user use the authorization code flow with PKCE (S256) at <code>${base}/oauth/authorize</code>, and
refresh tokens to renew access. OAuth libraries discover all endpoints from the
<a href="/.well-known/oauth-authorization-server">authorization server metadata</a> (RFC 8414). Revoke a token at
<code>${base}/oauth/revoke</code>; it stops working on the next request.</p>
<h3>Scopes</h3>
<p>Request the scopes you need with the <code>scope</code> parameter. A write scope includes its read scope. A request without a
required scope returns ${codeLink("insufficient_scope")}, and the <code>WWW-Authenticate</code> header lists all scopes that the
request needs (RFC 6750), along with those that the token has. Request exactly these to keep all of them. A
token that acts for a user is limited to what the user’s current role allows: owners and admins can use all scopes, members can use <code>links:read</code> and <code>links:write</code>.</p>
${table(
  "Scopes",
  {
    Scope: (scope) => html`<code>${scope}</code>`,
    Permission: (scope) => SCOPE_DESCRIPTIONS[scope],
  },
  API_SCOPES,
)}
<h3>Resources</h3>
<p>By default, a token works for both the REST API and MCP. To limit it to one of them, set the <code>resource</code> parameter
(RFC 8707) to <code>${api}</code> or <code>${mcp}</code>.</p>`;
}

function errors(problem: unknown): Html {
  return html`<p>Errors use <code>application/problem+json</code> (RFC 9457). Branch on <code>code</code> and show
<code>detail</code> to people. <code>type</code> links to the code in <a href="#codes">the list of error codes</a>,
<code>request_id</code> identifies the request in the server’s log, and <code>errors</code> lists each invalid field.</p>
${listing("Error response", pretty(problem))}
<p>Resources that don’t exist or belong to another organization both return ${codeLink("not_found")}. Unknown fields are
rejected, so a misspelled field is never silently ignored. You can retry a 5xx response. Don’t retry a 4xx response without
changing the request, except 429.</p>`;
}

function pagination({ api }: PublicUrls): Html {
  return html`<p>Lists are sorted from newest to oldest and return up to <code>limit</code> items per page (1 to 100, default 25):
<code>{"data": […], "next_cursor": "…"}</code>. To get the next page, pass <code>next_cursor</code> as <code>cursor</code> with the
same filters. The last page has a <code>next_cursor</code> of <code>null</code>. Items created in the meantime don’t shift the
pages. Links can also be sorted by <code>clicks</code> or <code>last_clicked_at</code>, with <code>sort</code>.</p>
${listing("Next page", `curl "${api}/links?limit=100&cursor=$CURSOR" \\\n  -H "Authorization: Bearer $TOKEN"`)}`;
}

function conditionalRequests(): Html {
  return html`<p>Every link has an <code>ETag</code>. Send it as <code>If-Match</code> with an update, and the request fails with
${codeLink("precondition_failed")} if the link has changed since. Send it as <code>If-None-Match</code> with a GET, and the response
is an empty 304 if the link hasn’t changed. Clicks don’t change the <code>ETag</code>.</p>`;
}

function idempotency(): Html {
  return html`<p>To retry a POST safely, send an <code>Idempotency-Key</code> header: 1 to 255 visible ASCII characters, for example a
UUID. For 24 hours, repeating the request with the same key returns the original response with
<code>Idempotency-Replayed: true</code> and doesn’t run the operation again. MCP tools take the same keys as
<code>idempotency_key</code>, so a retry also works across REST and MCP.</p>
<ul>
<li>Keys are scoped to the client and the user it acts for.</li>
<li>The same key with a different request returns ${codeLink("idempotency_key_reused")}. While the original request is still
running, the key returns ${codeLink("idempotency_key_in_use")}.</li>
<li>A webhook’s secret is shown once, so repeating the request that created or rotated it returns ${codeLink("secret_shown_once")}.
MCP tools, which never return secrets, replay the rest of the response.</li>
<li>Requests that fail because of invalid input, a token, a rate limit or a server error aren’t stored: retry them with the same
key. Responses with 404 and 409 are stored: use a new key once you’ve fixed the cause.</li>
<li>If the server crashes mid-request, the key is released within a minute. Retrying the creation of a link then returns the
existing link; other operations may run twice.</li>
</ul>`;
}

const LIMITS: [name: string, limitOn: (plan: Plan) => string][] = [
  ["Requests per minute", (plan) => number(limitsOf(plan).requests_per_minute)],
  ["Links per bulk request", (plan) => number(limitsOf(plan).links_per_bulk)],
  ["Webhooks", (plan) => number(limitsOf(plan).webhooks)],
  ["Webhook deliveries per day", (plan) => number(limitsOf(plan).deliveries_per_day)],
  ["Links", (plan) => number(limitsOf(plan).links)],
  ["Link data", (plan) => megabytes(limitsOf(plan).link_bytes)],
  ["Members", (plan) => number(limitsOf(plan).members)],
  ["Days in the audit log", (plan) => number(AUDIT_LOG_DAYS[plan])],
];

function rateLimits(): Html {
  return html`<p>REST and MCP requests share one limit per organization and minute. A bulk request counts as one request per link, and creates
none of them if that exceeds the limit. Every response includes the remaining requests and
the seconds until the limit resets:</p>
${listing("Rate limit headers", 'RateLimit-Policy: "organization";q=600;w=60\nRateLimit: "organization";r=599;t=42')}
<p>Above the limit, requests return ${codeLink("rate_limited")} with the seconds to wait in <code>Retry-After</code>. Requests without
a valid token count toward a limit per IP address, named <code>"address"</code>.
<a href="#getOrganization">Your organization</a> includes its limits and usage. A request that would exceed a quota returns
${codeLink("quota_exceeded")}; in a bulk request, each link counts by itself.</p>
${table(
  "Limits by plan",
  {
    Limit: ([name]) => name,
    ...Object.fromEntries(
      PLANS.map((plan) => [plan, ([, limitOn]: (typeof LIMITS)[number]) => limitOn(plan)]),
    ),
  },
  LIMITS,
)}`;
}

function number(value: number): string {
  return value === 0 ? "–" : value.toLocaleString("en");
}

function megabytes(bytes: number): string {
  return `${number(bytes / 1_000_000)} MB`;
}

function clickAnalytics(): Html {
  return html`<p>Every <code>GET</code> of a short link that redirects is a click. <code>clicks</code> are those of people, and
<code>bot_clicks</code> those of known bots, including <code>curl</code>: their user agents say so. <code>max_clicks</code> limits the sum
of both. Days and hours are in UTC.</p>
<p>Devices, browsers and operating systems are read from the user agent, which visitors can choose; names that aren’t known are
<code>null</code>.</p>
<p>A visitor’s country comes from the <code>CF-IPCountry</code> request header if <code>TRUST_PROXY</code> is 1 or more: Cloudflare sets
it, and other proxies can be configured to. Otherwise it is looked up in the database of <code>MMDB_PATH</code>. Without either, it is
<code>null</code>.</p>`;
}

function receivingWebhooks(): Html {
  return html`<p>Events are sent following <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> 1.0.0: a POST of
<code>{"type", "timestamp", "data"}</code> with the headers <code>webhook-id</code>, <code>webhook-timestamp</code> and
<code>webhook-signature</code>. Verify the signature with the webhook’s secret; Standard Webhooks has libraries for many languages.
Delivery is at least once: a retry has the same <code>webhook-id</code>, so you can ignore duplicates.</p>
<p>Respond with 2xx within ${TIMEOUTS.totalMs / 1000} seconds. Any other response is retried for three days with increasing pauses,
and <code>Retry-After</code> is respected. A 410 response disables the webhook. While a secret is being rotated, requests are signed
with both secrets.</p>
${table(
  "Events",
  {
    Event: ({ event }) => html`<code>${event}</code>`,
    Description: ({ meaning }) => meaning,
    Body: ({ body }) => schemaLink(body.meta()?.title ?? ""),
  },
  WEBHOOK_EVENT_SCHEMAS,
)}`;
}

/** How to prove that an export of the audit log is complete and unchanged. */
function auditLog(): Html {
  const kept = PLANS.map((plan) => `${retentionOf(plan)} on ${plan.charAt(0).toUpperCase()}${plan.slice(1)}`);
  return html`<p>The dashboard shows the audit log of your organization and exports it as CSV. Entries are kept for ${kept.join(", ")}.
A change of plan applies to new entries only. Entries are deleted oldest first.</p>
<p>Every entry has a sequence number, <code>seq</code>, and a <code>hash</code>: the SHA-256 of <code>previous_hash</code> (the hash of the entry before),
a line feed, and the <code>record</code> of the entry. Changing, deleting, inserting or reordering entries breaks this chain.</p>
<p>To verify an export, export the log without a filter and run this script with Node.js. It needs no network access and no packages. Someone who
can change the database could recompute all later hashes. To detect that, keep the hash that the audit log page shows, and pass it to the
script with a later export: <code>node verify-audit-log.mjs audit.csv &lt;hash&gt;</code>. The names and the summary are not part of the proof.</p>
${listing("verify-audit-log.mjs", SCRIPT)}`;
}

function versioning(): Html {
  return html`<p>Under <code>/v1</code>, we may add operations, optional request fields, response fields, events, tools and error codes at
any time. Your client should ignore what it doesn’t know. Breaking changes get a new version prefix. Before an operation or version
is removed, its responses include <code>Deprecation</code> (RFC 9745) and <code>Sunset</code> (RFC 8594) headers for at least twelve
months.</p>`;
}
