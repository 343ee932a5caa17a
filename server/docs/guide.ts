import type { Addresses } from "../../../resources/metadata.ts";
import { REQUEST_HEADERS } from "../../../resources/openapi/headers.ts";
import { limitsOf, PLANS } from "../../../resources/plans.ts";
import { API_SCOPES, SCOPE_MEANINGS } from "../../../resources/scopes.ts";
import { TOLD } from "../../../resources/webhooks/payloads.ts";
import { PATIENCE } from "../../../resources/webhooks/send.ts";
import { table } from "../dashboard/table.ts";
import { type Html, html } from "../html.ts";
import { codeLink, listing, pretty, prose } from "./prose.ts";
import { schemaLink } from "./schema.ts";

/** A chapter that explains what all operations have in common. */
export type Chapter = { id: string; title: string; body: Html };

/** The chapters in front of the operations. */
export function guide(addresses: Addresses, problem: unknown): Chapter[] {
  return [
    { id: "start", title: "Start", body: start(addresses) },
    { id: "authentication", title: "Authentication", body: authentication(addresses) },
    { id: "errors", title: "Errors", body: errors(problem) },
    { id: "lists", title: "Lists", body: lists(addresses) },
    { id: "versions-of-a-link", title: "Conditional requests", body: conditions() },
    { id: "idempotency", title: "Idempotency", body: idempotency() },
    { id: "rate-limits", title: "Rate limits", body: limits() },
    { id: "receiving", title: "Receiving webhooks", body: receiving() },
    { id: "changes", title: "Versions and changes", body: changes() },
  ];
}

function start({ api, mcp, base, short }: Addresses): Html {
  return html`<p>Short links of an organization, their clicks, and webhooks that tell of them. Send and read JSON in UTF-8;
names are <code>snake_case</code>, times RFC 3339 in UTC, ids begin with what they are of.</p>
<dl class="facts">
<dt>REST API</dt><dd><code>${api}</code></dd>
<dt>MCP endpoint</dt><dd><code>${mcp}</code></dd>
<dt>Short links</dt><dd><code>${short}</code></dd>
<dt>Description</dt><dd><a href="/v1/openapi.json">OpenAPI 3.1</a>, from which clients can be generated</dd>
<dt>Client id and secret</dt><dd>in the <a href="${base}/dashboard">dashboard</a>, under API access, on the Growth or the Premium plan</dd>
</dl>`;
}

function authentication({ base, api, mcp }: Addresses): Html {
  return html`<p>Every call but that of the OpenAPI document carries an access token of OAuth 2.0:
<code>Authorization: Bearer &lt;token&gt;</code>. A script of the organization gets one with the client's credentials, good for an hour:</p>
${listing(
  "Getting a token",
  `TOKEN=$(curl -s ${base}/oauth/token \\
  -d grant_type=client_credentials \\
  -d client_id="$CLIENT_ID" \\
  -d client_secret="$CLIENT_SECRET" |
  sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
)}
<p>An app that acts for people uses the authorization code flow with PKCE (S256) at <code>${base}/oauth/authorize</code>, and
renews its token with the refresh token. Libraries read every address from
<a href="/.well-known/oauth-authorization-server">the metadata of the server</a> (RFC 8414). A token is revoked at
<code>${base}/oauth/revoke</code>, and is refused from the next call on.</p>
<h3>Scopes</h3>
<p>Ask for what you need with <code>scope</code>. A write scope includes its read scope. A call without the scope that it needs
is ${codeLink("insufficient_scope")}, and the challenge in <code>WWW-Authenticate</code> names all that it needs (RFC 6750).
A token that acts for a user opens only what the user’s role allows at that moment: owners and admins all scopes, members <code>links:read</code> and <code>links:write</code>.</p>
${table(
  "Scopes",
  [
    { head: "Scope", cell: (scope: (typeof API_SCOPES)[number]) => html`<code>${scope}</code>` },
    { head: "Opens", cell: (scope) => SCOPE_MEANINGS[scope] },
  ],
  [...API_SCOPES],
)}
<h3>Resources</h3>
<p>With <code>resource</code> (RFC 8707) a token is for <code>${api}</code> or for <code>${mcp}</code> alone; without, for both.</p>`;
}

function errors(problem: unknown): Html {
  return html`<p>A refusal is <code>application/problem+json</code> (RFC 9457). Programs go by <code>code</code>, people read
<code>detail</code>, <code>type</code> leads to <a href="#codes">the list of codes</a>, <code>request_id</code> finds the request in
our log, and <code>errors</code> names each wrong field with its rule.</p>
${listing("A problem", pretty(problem))}
<p>What is not there and what belongs to somebody else is ${codeLink("not_found")} alike. Unknown fields are refused, so that a
misspelt one is not lost. A 5xx may be tried again; a 4xx will be refused again until something changes.</p>`;
}

function lists({ api }: Addresses): Html {
  return html`<p>Lists come newest first, in pages of <code>limit</code> (1 to 100, 25 if absent):
<code>{"data": […], "next_cursor": "…"}</code>. Pass <code>next_cursor</code> as <code>cursor</code>, with the same filter, until it
is <code>null</code>. What is added meanwhile does not shift the pages.</p>
${listing("The next page", `curl "${api}/links?limit=100&cursor=$CURSOR" \\\n  -H "Authorization: Bearer $TOKEN"`)}`;
}

function conditions(): Html {
  return html`<p>A link has an <code>ETag</code>. Send it as <code>If-Match</code> with a change, and the change is
${codeLink("precondition_failed")} if somebody else was faster. Send it as <code>If-None-Match</code> with a GET, and the answer is an
empty 304 if nothing has changed. Clicks do not change it.</p>`;
}

function idempotency(): Html {
  return html`<p>A POST whose answer was lost may be sent again with the same <code>Idempotency-Key</code>: it gets the same answer,
marked with <code>Idempotency-Replayed: true</code>, and is not done twice. A key is ${prose(REQUEST_HEADERS["Idempotency-Key"])} Tools take
the same keys as <code>idempotency_key</code>.</p>
<p>The same key with another request is ${codeLink("idempotency_key_reused")}; while the first is still under way, it is
${codeLink("idempotency_key_in_use")}.</p>`;
}

function limits(): Html {
  return html`<p>Calls of the REST API and of MCP count together, per organization and minute. Every answer tells what is left, and
the seconds until all of it is back:</p>
${listing("Headers of the limit", 'RateLimit-Policy: "organization";q=600;w=60\nRateLimit: "organization";r=599;t=42')}
<p>Over the limit, the answer is ${codeLink("rate_limited")} with <code>Retry-After</code> in seconds. What comes without a good
token counts against its address, as <code>"address"</code>. <a href="#getOrganization">Your organization</a> shows its limits.</p>
${table(
  "Limits of the plans",
  [
    { head: "Plan", cell: (plan: (typeof PLANS)[number]) => plan },
    { head: "Calls a minute", cell: (plan) => number(limitsOf(plan).requests_per_minute) },
    { head: "Links in a bulk call", cell: (plan) => number(limitsOf(plan).links_per_bulk) },
    { head: "Webhooks", cell: (plan) => number(limitsOf(plan).webhooks) },
  ],
  [...PLANS],
)}`;
}

function number(value: number): string {
  return value === 0 ? "–" : value.toLocaleString("en");
}

function receiving(): Html {
  return html`<p>Events are sent as <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> 1.0.0 says: a POST of
<code>{"type", "timestamp", "data"}</code> with the headers <code>webhook-id</code>, <code>webhook-timestamp</code> and
<code>webhook-signature</code>. Check the signature with the secret of the webhook; there are libraries for it in many languages. The id
stays the same when a delivery is repeated, so that you can tell what you have had already.</p>
<p>Answer 2xx within ${PATIENCE.totalMs / 1000} seconds. Anything else is tried again for three days, with growing pauses; <code>Retry-After</code> is
honoured, 410 disables the webhook. While a secret is being replaced, both sign.</p>
${table(
  "Events",
  [
    { head: "Event", cell: ({ event }: (typeof TOLD)[number]) => html`<code>${event}</code>` },
    { head: "Tells", cell: ({ meaning }) => meaning },
    { head: "Body", cell: ({ body }) => schemaLink(body.meta()?.title ?? "") },
  ],
  [...TOLD],
)}`;
}

function changes(): Html {
  return html`<p>New operations, optional fields of requests, fields of answers, events, tools and codes may come at any time under
<code>/v1</code>: ignore what you do not know. Whatever could break a client comes under a new prefix. Before an operation or a version
ends, its answers carry <code>Deprecation</code> (RFC 9745) and <code>Sunset</code> (RFC 8594) for at least twelve months.</p>`;
}
