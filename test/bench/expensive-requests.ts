import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { createDpopKey, signProof } from "../harness/clients/dpop.ts";

/** A request as `fetch` takes it. */
export type Sent = { path: string; init?: RequestInit };
/** A request, or what makes one that differs each time. */
export type Candidate = Sent | ((index: number) => Sent | Promise<Sent>);

// Node allows 16 KB for all headers.
const LONG = 12_000;
const KB = 1024;
const MB = 2 ** 20;
const JSON_TYPE = { "content-type": "application/json" };
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };

export const repeated = (part: string, bytes: number) => part.repeat(bytes / part.length);
const listed = <T>(count: number, item: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => item(index));
const named = (count: number, value: unknown) =>
  Object.fromEntries(listed(count, (index) => [`key${index}`, value]));
/** Returns a text of so many bytes, joined from parts that differ. */
function distinct(bytes: number, part: (name: string) => string, separator = ","): string {
  let text = part("0");
  for (let index = 1; text.length < bytes - 30; index++) text += separator + part(index.toString(36));
  return text;
}
const posted = (path: string, body: string | Buffer, headers: object = {}): Sent => ({
  path,
  init: { method: "POST", body: body as BodyInit, headers: { ...JSON_TYPE, ...headers } },
});
const form = (path: string, body: string, headers: object = {}) =>
  posted(path, body, { ...FORM_TYPE, ...headers });
const objectOf = (bytes: number) => `{${distinct(bytes, (name) => `"${name}":1`)}}`;
const arrayOf = (bytes: number) => `[${distinct(bytes, (name) => `{"${name}":1}`)}]`;
const parameters = (bytes: number) => distinct(bytes, (name) => `${name}=1`, "&");
const scopes = (bytes: number) => distinct(bytes, (name) => name, "+");

export const largest = () => ({
  url: `https://example.com/${repeated("x", 2000)}`,
  title: repeated("x", 255),
  tags: listed(20, (index) => `${index}`.padEnd(50, "x")),
  metadata: Object.fromEntries(listed(50, (index) => [`${index}`.padEnd(40, "x"), repeated("x", 500)])),
});
// Of 64 KB, which a request may have. The largest links are smaller in ASCII.
const smaller = () => ({ ...largest(), metadata: named(50, repeated("x", 100)) });
const invalid = () => ({ url: "x", slug: "a b", title: "\n", tags: ["", ""], metadata: named(50, {}) });

/** Requests of callers without credentials. `long-texts.ts` adds those with a long text in a field. */
export function requestsOfVisitors(leakKey: string): Record<string, Candidate> {
  const signIn = (body: string | Buffer, headers?: object) => posted("/auth/login", body, headers);
  const credentials = (password: string) => JSON.stringify({ username: "unknown", password });
  const register = (path: string, body: object) => posted(path, JSON.stringify(body));
  const base64url = (text: string) => Buffer.from(text).toString("base64url");
  const jwt = (payload: string) =>
    `${base64url('{"alg":"RS256","kid":"x"}')}.${base64url(payload)}.${repeated("A", 500)}`;
  const assertion = () => ({
    grant_type: "client_credentials",
    client_id: `lgc_${randomBytes(16).toString("base64url")}`,
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: jwt(JSON.stringify({ iss: "x", aud: repeated("x", 30 * KB) })),
  });
  const invalidClient = "grant_type=client_credentials&client_id=x&client_secret=x";
  return {
    "sign-in, wrong password (Argon2)": signIn(credentials("wrong password")),
    "sign-in, password of 60 KB (Argon2)": signIn(credentials(repeated("x", 60 * KB))),
    "sign-in, 64 KB of objects (Argon2)": signIn(`{"username":${arrayOf(64 * KB)}}`),
    "sign-in, 64 KB of brackets": signIn(repeated("[", 64 * KB)),
    "sign-in, 64 KB of fields": signIn(objectOf(64 * KB)),
    "sign-in, form of 64 KB": form(
      "/auth/login",
      distinct(64 * KB, (name) => `${name}[a][b][]=1`, "&"),
    ),
    "sign-in, 64 MB compressed": signIn(gzipSync(Buffer.alloc(64 * MB, " ")).subarray(0, 64 * KB), {
      "content-encoding": "gzip",
    }),
    "registration of a user, password of 60 KB": register("/auth/register", {
      username: "new-user",
      password: repeated("aB1$", 60 * KB),
    }),
    "registration of a client, 16 KB": register("/oauth/register", {
      redirect_uris: listed(500, (index) => `https://a.example/${index}`),
    }),
    "token, form of 56 KB": form("/oauth/token", parameters(55 * KB)),
    "token, 10,000 scopes": form("/oauth/token", `${invalidClient}&scope=${scopes(54 * KB)}`),
    "token, assertion of 50 KB": () => form("/oauth/token", `${new URLSearchParams(assertion())}`),
    "pushed request, 50 KB": form("/oauth/par", `client_id=dashboard&${parameters(50 * KB)}`),
    "authorization, query of 12 KB": { path: `/oauth/authorize?${parameters(LONG)}` },
    "authorization, one parameter 3,000 times": { path: `/oauth/authorize?${repeated("a=1&", LONG)}` },
    "authorization, form of 10 KB": form("/oauth/authorize", parameters(10 * KB)),
    "interaction, form of 16 KB": form("/interaction/x/sign-in", repeated("a[]=1&", 16 * KB)),
    "landing page, 12 KB of cookies": {
      path: "/",
      init: { headers: { cookie: distinct(LONG, (name) => `${name}=${name}`, "; "), accept: "text/html" } },
    },
    "metrics of this machine": { path: "/metrics" },
    "short link, User-Agent of 12 KB": (index) => ({
      path: "/unknown-link",
      init: { headers: { "user-agent": `${index} ${repeated("Mozilla/5.0 (X; ", LONG)}` } },
    }),
    "API without a token": posted("/v1/links", repeated("[", 64 * KB)),
    "API, wrong DPoP proof of 12 KB": {
      path: "/v1/links",
      init: { headers: { authorization: "DPoP x", dpop: jwt(repeated("x", 8000)) } },
    },
    "report of leaked credentials, 512 KB, wrong signature": posted(
      "/oauth/leaked-credentials",
      repeated(" ", 512 * KB),
      { "github-public-key-identifier": "key", "github-public-key-signature": leakKey },
    ),
  };
}

export type Tenant = { token: string; session: string; organizationId: string; client: NewClient };

/** Requests of an organization's client and of its owner. */
export async function requestsOfTenant(tenant: Tenant, origin: string): Promise<Record<string, Candidate>> {
  const { token, session, organizationId, client } = tenant;
  const authorization = { authorization: `Bearer ${token}` };
  const base = `/dashboard/organizations/${organizationId}`;
  const text = (body: unknown) => (typeof body === "string" ? body : JSON.stringify(body));
  const api = (path: string, body: unknown, headers: object = {}) =>
    posted(path, text(body), { ...authorization, ...headers });
  const link = (body: unknown) => api("/v1/links", body);
  const bulk = (body: unknown) => api("/v1/links/bulk", body);
  const read = (path: string) => ({ path, init: { headers: authorization } });
  const inDashboard = (path: string, init: RequestInit, headers: object): Sent => ({
    path: base + path,
    init: { ...init, headers: { authorization: `Bearer ${session}`, ...headers } },
  });
  const page = (path: string, accept = "text/html") => inDashboard(path, {}, { accept });
  const change = (path: string, body: unknown, method: string) =>
    inDashboard(path, { method, body: text(body) }, JSON_TYPE);
  const MCP = { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-03-26" };
  const mcp = (body: unknown) => api("/mcp", body, MCP);
  const request = (id: number, method: string, params: object = {}) => ({
    jsonrpc: "2.0",
    id,
    method,
    params,
  });
  const lists = (id: number, filter: object = {}) =>
    request(id, "tools/call", { name: "list_links", arguments: { limit: 100, ...filter } });
  const hundred = (one: object) => ({ links: listed(100, () => one) });
  const escaped = (bytes: number) => `["\\u0061",${repeated("1,", bytes - 20)}1]`;
  const dpopKey = await createDpopKey();
  const credentials = `client_id=${client.clientId}&client_secret=${client.clientSecret}`;
  const tokenRequest = `grant_type=client_credentials&${credentials}`;
  const redirectUris = listed(2000, (index) => `https://a.example/${index}`);
  return {
    "link of 60 KB": link({ ...largest(), metadata: named(50, repeated("é", 500)) }),
    "link with Idempotency-Key": (index) =>
      api("/v1/links", smaller(), { "idempotency-key": `key-${index}-${Date.now()}` }),
    "link, 64 KB of fields": link(objectOf(64 * KB)),
    "link, 64 KB of invalid tags": link({ url: "x", tags: Array(20_000).fill("") }),
    "link, 64 KB of objects": link(`{"tags":${arrayOf(64 * KB - 20)}}`),
    "link, 64 KB of brackets": link(repeated("[", 64 * KB)),
    "link, 64 KB with an escape": link(escaped(64 * KB)),
    "links in bulk, 1 MB of links": bulk(hundred(smaller())),
    "links in bulk, 100 invalid ones": bulk(hundred(invalid())),
    "links in bulk, 1 MB of fields": bulk(objectOf(MB)),
    "links in bulk, 1 MB of objects": bulk(arrayOf(MB)),
    "links in bulk, 9,000 objects": bulk(`{"links":${arrayOf(9000 * 9)}}`.padEnd(MB - 20)),
    "links in bulk, 1 MB of brackets": bulk(repeated("[", MB)),
    "links in bulk, 1 MB with an escape": bulk(escaped(MB)),
    "list of 100 links of 60 KB, filtered": read("/v1/links?limit=100&tag=large"),
    "search, 3 letters": read("/v1/links?limit=100&search=exa"),
    "search for a rare text": read("/v1/links?search=zzqzz"),
    "filter by a tag": read("/v1/links?limit=100&tag=none"),
    "query of 12 KB": read(`/v1/links?${parameters(LONG)}`),
    "webhook, 64 KB of events": api("/v1/webhooks", {
      url: "https://a.example/",
      events: Array(15_000).fill("x"),
    }),
    "MCP, batch of 10 lists of 100 links": mcp(listed(10, (id) => lists(id))),
    "MCP, batch of 10 lists of tools": mcp(listed(10, (id) => request(id, "tools/list"))),
    "MCP, 64 KB of objects": mcp(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${arrayOf(63 * KB)}}}`),
    "MCP, list of 100 links of 60 KB, filtered": mcp(lists(1, { tag: "large" })),
    "token, 50 KB of scopes": form("/oauth/token", `${tokenRequest}&scope=${scopes(50 * KB)}`),
    "token with DPoP": async () =>
      form("/oauth/token", tokenRequest, {
        dpop: await signProof(dpopKey, { claims: { htm: "POST", htu: `${origin}/oauth/token` } }),
      }),
    "pushed request, 50 KB, with a secret": form("/oauth/par", `${credentials}&${parameters(50 * KB)}`),
    "page of links": page("/links"),
    "page of links, search": page("/links?search=exa"),
    "page of the audit log": page("/audit"),
    "audit log as CSV": page("/audit.csv", "text/csv"),
    "redirect URIs, 64 KB": change("/client/redirect-uris", { redirect_uris: redirectUris }, "PUT"),
    "links in the dashboard, 64 KB of objects": change("/links", `{"tags":${arrayOf(64 * KB - 20)}}`, "POST"),
  };
}
