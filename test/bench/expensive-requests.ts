import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { createDpopKey, signProof } from "../harness/clients/dpop.ts";

/** A request as `fetch` takes it. `index` differs each time. */
export type Sent = { path: string; init?: RequestInit };
export type Candidate = (index: number) => Sent | Promise<Sent>;

// Node allows 16 KB for all headers.
const LONG = 12_000;
const KB = 1024;
const MB = 2 ** 20;
export const JSON_TYPE = { "content-type": "application/json" };
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };

export const repeated = (part: string, bytes: number) => part.repeat(bytes / part.length);
const named = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key${index}`, value]));
/** Returns a text of so many bytes, joined from parts that differ. */
function distinct(bytes: number, part: (name: string) => string, separator = ","): string {
  const parts: string[] = [];
  for (let index = 0, length = 0; length < bytes - 30; index++) {
    parts.push(part(index.toString(36)));
    length += (parts.at(-1) as string).length + separator.length;
  }
  return parts.join(separator);
}
const posted = (path: string, body: string | Buffer, headers: object = {}): Sent => ({
  path,
  init: { method: "POST", body: body as BodyInit, headers: { ...JSON_TYPE, ...headers } },
});
const form = (path: string, body: string, headers: object = {}) =>
  posted(path, body, { ...FORM_TYPE, ...headers });

/** A link with all fields at their maximum. */
export const largest = () => ({
  url: `https://example.com/${repeated("x", 2000)}`,
  title: repeated("x", 255),
  tags: Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(50, "x")),
  metadata: Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`${index}`.padEnd(40, "x"), repeated("x", 500)]),
  ),
});
// Of 64 KB, which a request may have. The largest links are smaller in ASCII.
const smaller = () => ({ ...largest(), metadata: named(50, repeated("x", 100)) });
const invalid = () => ({ url: "x", slug: "a b", title: "\n", tags: ["", ""], metadata: named(50, {}) });

/** Requests of callers without credentials. */
export function requestsOfVisitors(leakKey: string): Record<string, Candidate> {
  const header =
    (path: string, name: string, value: string, more: object = {}): Candidate =>
    () => ({
      path,
      init: { headers: { [name]: value, ...more } },
    });
  const json = (path: string, body: string) => () => posted(path, body);
  const html = { accept: "text/html" };
  const bomb = gzipSync(Buffer.alloc(64 * MB, " ")).subarray(0, 64 * KB);
  const objects = `[${distinct(64 * KB, (name) => `{"${name}":1}`)}]`;
  const jwt = (payload: string) =>
    `${Buffer.from('{"alg":"RS256","kid":"x"}').toString("base64url")}.${Buffer.from(payload).toString("base64url")}.${repeated("A", 500)}`;
  const assertion = (claims: object) =>
    new URLSearchParams({
      grant_type: "client_credentials",
      client_id: `lgc_${randomBytes(16).toString("base64url")}`,
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: jwt(JSON.stringify(claims)),
    }).toString();
  return {
    "sign-in, wrong password (Argon2)": () =>
      posted("/auth/login", JSON.stringify({ username: "unknown", password: "wrong password" })),
    "sign-in, password of 60 KB (Argon2)": () =>
      posted("/auth/login", JSON.stringify({ username: "unknown", password: repeated("x", 60 * KB) })),
    "sign-in, 64 KB of objects (Argon2)": json("/auth/login", `{"username":${objects}}`),
    "sign-in, 64 KB of brackets": json("/auth/login", repeated("[", 64 * KB)),
    "sign-in, 64 KB of fields": json("/auth/login", `{${distinct(64 * KB, (name) => `"${name}":1`)}}`),
    "sign-in, form of 64 KB": () =>
      form(
        "/auth/login",
        distinct(64 * KB, (name) => `${name}[a][b][]=1`, "&"),
      ),
    "sign-in, form of 64 KB, one list": () => form("/auth/login", repeated("a[]=1&", 64 * KB)),
    "sign-in, 64 MB compressed": () => posted("/auth/login", bomb, { "content-encoding": "gzip" }),
    "passkey, 64 KB": json("/auth/passkey", JSON.stringify({ credential: { id: repeated("x", 60 * KB) } })),
    "registration of a user, password of 60 KB": () =>
      posted("/auth/register", JSON.stringify({ username: "new-user", password: repeated("aB1$", 60 * KB) })),
    "registration of a user, name of 60 KB": () =>
      posted("/auth/register", JSON.stringify({ username: repeated("é", 30 * KB), password: "x" })),
    "registration of a client, 16 KB": json(
      "/oauth/register",
      JSON.stringify({
        redirect_uris: Array.from({ length: 500 }, (_, index) => `https://a.example/${index}`),
      }),
    ),
    "registration of a client": () =>
      posted(
        "/oauth/register",
        JSON.stringify({ client_name: repeated("x", 100), redirect_uris: ["http://127.0.0.1/callback"] }),
      ),
    "token, form of 56 KB": () =>
      form(
        "/oauth/token",
        distinct(55 * KB, (name) => `${name}=1`, "&"),
      ),
    "token, 10,000 scopes": () =>
      form(
        "/oauth/token",
        `grant_type=client_credentials&client_id=x&client_secret=x&scope=${distinct(54 * KB, (name) => name, "+")}`,
      ),
    "token, Basic header of 12 KB": () =>
      form("/oauth/token", "grant_type=client_credentials", {
        authorization: `Basic ${repeated("A", LONG)}`,
      }),
    "token, assertion of 50 KB": () =>
      form("/oauth/token", assertion({ iss: "x", aud: repeated("x", 30 * KB) })),
    "token, code verifier of 50 KB": () =>
      form(
        "/oauth/token",
        `grant_type=authorization_code&client_id=dashboard&code=x&code_verifier=${repeated("x", 50 * KB)}`,
      ),
    "introspection without credentials": () => form("/oauth/introspect", `token=${repeated("x", 50 * KB)}`),
    "revocation, 50 KB": () => form("/oauth/revoke", `client_id=dashboard&token=${repeated("x.", 50 * KB)}`),
    "pushed request, 50 KB": () =>
      form("/oauth/par", `client_id=dashboard&${distinct(50 * KB, (name) => `${name}=1`, "&")}`),
    "authorization, query of 12 KB": () => ({
      path: `/oauth/authorize?${distinct(LONG, (name) => `${name}=1`, "&")}`,
    }),
    "authorization, one parameter 3,000 times": () => ({
      path: `/oauth/authorize?${repeated("a=1&", LONG)}`,
    }),
    "authorization, 4 KB of scopes": () => ({
      path: `/oauth/authorize?client_id=dashboard&response_type=code&scope=${distinct(4000, (name) => name, "+")}`,
    }),
    "authorization, form of 10 KB": () =>
      form(
        "/oauth/authorize",
        distinct(10 * KB, (name) => `${name}=1`, "&"),
      ),
    "interaction, form of 16 KB": () => form("/interaction/x/sign-in", repeated("a[]=1&", 16 * KB)),
    "landing page, 12 KB of cookies": header(
      "/",
      "cookie",
      distinct(LONG, (name) => `${name}=${name}`, "; "),
      html,
    ),
    "dashboard, 12 KB of cookies": header("/dashboard", "cookie", repeated("session=x; ", LONG), html),
    "unknown page, Accept of 12 KB": header(
      "/a/b",
      "accept",
      distinct(LONG, (name) => `text/${name};q=0.1`),
    ),
    documentation: header("/docs", "accept", "text/html"),
    "documentation, Accept-Encoding of 12 KB": header(
      "/docs",
      "accept-encoding",
      distinct(LONG, (name) => `${name};q=0.1`),
    ),
    "documentation, If-None-Match of 12 KB": header(
      "/docs",
      "if-none-match",
      distinct(LONG, (name) => `"${name}"`),
    ),
    "OpenAPI document": () => ({ path: "/v1/openapi.json" }),
    "style sheet": () => ({ path: "/assets/dashboard.css" }),
    "metrics of this machine": () => ({ path: "/metrics" }),
    "short link, User-Agent of 12 KB": (index) => ({
      path: "/unknown-link",
      init: { headers: { "user-agent": `${index} ${repeated("Mozilla/5.0 (X; ", LONG)}` } },
    }),
    "short link, Referer of 12 KB": (index) => ({
      path: "/unknown-link",
      init: {
        headers: { referer: `https://${repeated("a.", 250)}${index}.example/${repeated("x", LONG - 500)}` },
      },
    }),
    "short link, path of 12 KB": () => ({ path: `/${repeated("%41", LONG)}` }),
    "API without a token": () => posted("/v1/links", repeated("[", 64 * KB)),
    "API, wrong DPoP proof of 12 KB": header("/v1/links", "authorization", "DPoP x", {
      dpop: jwt(repeated("x", 8000)),
    }),
    "MCP without a token": () => posted("/mcp", repeated("[", 64 * KB)),
    "report of leaked credentials, 512 KB, wrong signature": () =>
      posted("/oauth/leaked-credentials", repeated(" ", 512 * KB), {
        "github-public-key-identifier": "key",
        "github-public-key-signature": leakKey,
      }),
  };
}

export type Tenant = {
  token: string;
  session: string;
  organization: string;
  client: { id: string; secret: string };
};

/** Requests of an organization's client and of its owner. */
export async function requestsOfTenant(tenant: Tenant, origin: string): Promise<Record<string, Candidate>> {
  const { token, session, organization, client } = tenant;
  const authorization = { authorization: `Bearer ${token}` };
  const api = (path: string, body: unknown, headers: object = {}): Sent =>
    posted(path, typeof body === "string" ? body : JSON.stringify(body), { ...authorization, ...headers });
  const read =
    (path: string, accept = "application/json"): Candidate =>
    () => ({
      path,
      init: {
        headers: {
          ...(path.startsWith("/v1") ? authorization : { authorization: `Bearer ${session}` }),
          accept,
        },
      },
    });
  const base = `/dashboard/organizations/${organization}`;
  const dashboard =
    (path: string, body: unknown, method = "POST"): Candidate =>
    () => ({
      path: base + path,
      init: {
        method,
        body: typeof body === "string" ? body : JSON.stringify(body),
        headers: { ...JSON_TYPE, authorization: `Bearer ${session}` },
      },
    });
  const mcp = (body: unknown) =>
    api("/mcp", body, {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-03-26",
    });
  const call = (id: number, name: string, args: object) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name, arguments: args },
  });
  const [{ id: linkId }] = (
    (await (await fetch(`${origin}/v1/links?limit=1`, { headers: authorization })).json()) as {
      data: [{ id: string }];
    }
  ).data;
  const dpopKey = await createDpopKey();
  const credentials = `client_id=${client.id}&client_secret=${client.secret}`;
  const tokenRequest = `grant_type=client_credentials&${credentials}`;
  const bulk = (link: object) => ({ links: Array.from({ length: 100 }, () => link) });
  const objects = (bytes: number) => `[${distinct(bytes, (name) => `{"${name}":1}`)}]`;
  return {
    link: () => api("/v1/links", { url: "https://example.com/" }),
    "link of 60 KB": () => api("/v1/links", { ...largest(), metadata: named(50, repeated("é", 500)) }),
    "link with Idempotency-Key": (index) =>
      api("/v1/links", smaller(), { "idempotency-key": `key-${index}-${Date.now()}` }),
    "link, 101 fields": () => api("/v1/links", named(101, 1)),
    "link, 64 KB of fields": () => api("/v1/links", `{${distinct(64 * KB, (name) => `"${name}":1`)}}`),
    "link, 64 KB of invalid tags": () => api("/v1/links", { url: "x", tags: Array(20_000).fill("") }),
    "link, 64 KB of objects": () => api("/v1/links", `{"tags":${objects(64 * KB - 20)}}`),
    "link, 64 KB of brackets": () => api("/v1/links", repeated("[", 64 * KB)),
    "link, 100 invalid metadata": () => api("/v1/links", invalid()),
    "link, 64 KB with an escape": () => api("/v1/links", `["\\u0061",${repeated("1,", 64 * KB - 20)}1]`),
    "links in bulk, 100": () => api("/v1/links/bulk", bulk({ url: "https://example.com/" })),
    "links in bulk, 1 MB of links": () => api("/v1/links/bulk", bulk(smaller())),
    "links in bulk, 100 invalid ones": () => api("/v1/links/bulk", bulk(invalid())),
    "links in bulk, 1 MB of fields": () =>
      api("/v1/links/bulk", `{${distinct(MB, (name) => `"${name}":1`)}}`),
    "links in bulk, 1 MB of objects": () => api("/v1/links/bulk", objects(MB)),
    "links in bulk, 9,000 objects": () =>
      api("/v1/links/bulk", `{"links":${objects(9000 * 9)}}`.padEnd(MB - 20)),
    "links in bulk, 1 MB of brackets": () => api("/v1/links/bulk", repeated("[", MB)),
    "links in bulk, 1 MB with an escape": () =>
      api("/v1/links/bulk", `["\\u0061",${repeated("1,", MB - 20)}1]`),
    "list of 100 links of 60 KB, filtered": read("/v1/links?limit=100&tag=large"),
    "list of 100 links": read("/v1/links?limit=100"),
    "search, 3 letters": read("/v1/links?limit=100&search=exa"),
    "search, longest text": read(`/v1/links?search=${repeated("ab%20", 500)}`),
    "search for a rare text": read("/v1/links?search=zzqzz"),
    "filter by a tag": read("/v1/links?limit=100&tag=none"),
    "query of 12 KB": read(`/v1/links?${distinct(LONG, (name) => `${name}=1`, "&")}`),
    "analytics of a link": read(`/v1/links/${linkId}/analytics?from=2026-01-01&to=2026-12-31`),
    "If-Match of 12 KB": () => ({
      path: `/v1/links/${linkId}`,
      init: {
        method: "PATCH",
        body: '{"title":"x"}',
        headers: { ...JSON_TYPE, ...authorization, "if-match": distinct(LONG, (name) => `"${name}"`) },
      },
    }),
    "webhook, 64 KB of events": () =>
      api("/v1/webhooks", { url: "https://a.example/", events: Array(15_000).fill("x") }),
    "MCP, list of tools": () => mcp({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    "MCP, batch of 10 pings": () =>
      mcp(Array.from({ length: 10 }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" }))),
    "MCP, batch of 10 calls of whoami": () =>
      mcp(Array.from({ length: 10 }, (_, id) => call(id, "whoami", {}))),
    "MCP, batch of 10 lists of 100 links": () =>
      mcp(Array.from({ length: 10 }, (_, id) => call(id, "list_links", { limit: 100 }))),
    "MCP, batch of 10 lists of tools": () =>
      mcp(Array.from({ length: 10 }, (_, id) => ({ jsonrpc: "2.0", id, method: "tools/list" }))),
    "MCP, link of 60 KB": () => mcp(call(1, "create_link", largest())),
    "MCP, 64 KB of invalid arguments": () =>
      mcp(call(1, "create_link", { url: "x", tags: Array(15_000).fill("") })),
    "MCP, 64 KB of objects": () =>
      mcp(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${objects(63 * KB)}}}`),
    "MCP, list of 100 links of 60 KB, filtered": () =>
      mcp(call(1, "list_links", { limit: 100, tag: "large" })),
    token: () => form("/oauth/token", tokenRequest),
    "token, 50 KB of scopes": () =>
      form("/oauth/token", `${tokenRequest}&scope=${distinct(50 * KB, (name) => name, "+")}`),
    "token with DPoP": async () =>
      form("/oauth/token", tokenRequest, {
        dpop: await signProof(dpopKey, { claims: { htm: "POST", htu: `${origin}/oauth/token` } }),
      }),
    "pushed request, 50 KB, with a secret": () =>
      form("/oauth/par", `${credentials}&${distinct(50 * KB, (name) => `${name}=1`, "&")}`),
    introspection: () => form("/oauth/introspect", `${credentials}&token=${token}`),
    "page of links": read(`${base}/links`, "text/html"),
    "page of links, search": read(`${base}/links?search=exa`, "text/html"),
    "page of connections": read(`${base}/connect`, "text/html"),
    "page of the audit log": read(`${base}/audit`, "text/html"),
    "audit log as JSON": read(`${base}/audit?limit=100`),
    "audit log as CSV": read(`${base}/audit.csv`),
    "QR code": read(`${base}/links/${linkId}/qr.svg`),
    "analytics page": read(`${base}/analytics`, "text/html"),
    "redirect URIs, 64 KB": dashboard(
      "/client/redirect-uris",
      { redirect_uris: Array.from({ length: 2000 }, (_, n) => `https://a.example/${n}`) },
      "PUT",
    ),
    "redirect URI of 60 KB": dashboard(
      "/client/redirect-uris",
      { redirect_uris: [`https://a.example/${repeated("a.", 60 * KB)}`] },
      "PUT",
    ),
    "trust rule, 60 KB": dashboard("/workload-identity", {
      name: "x",
      issuer: "https://a.example",
      subject: repeated("*a", 60 * KB),
      audience: "x",
      claims: {},
      scopes: ["links:write"],
    }),
    "public key, 60 KB": dashboard("/client/keys", {
      jwk: { kty: "RSA", e: "AQAB", n: repeated("x", 60 * KB) },
    }),
    "export of the account": read("/dashboard/account/export"),
    "links in the dashboard, 64 KB of objects": dashboard("/links", `{"tags":${objects(64 * KB - 20)}}`),
  };
}
