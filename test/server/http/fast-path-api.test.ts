import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { athOf, createDpopKey, signProof } from "../../harness/clients/dpop.ts";
import { BASE, createFronts, HOST, request, send } from "../../harness/front.ts";
import { until } from "../../harness/webhooks.ts";

const { storage, serve, close } = await createFronts();

const ORIGIN = "https://app.example.net";
const JSON_TYPE = "Content-Type: application/json";
const key = await createDpopKey();

type Client = { clientId: string; clientSecret: string };
type Bytes = string | Buffer;

/** Returns a POST with a body. A `{nn}` in it is another number each time that it is sent. */
function post(path: string, body: Bytes | object, ...headers: string[]): Buffer {
  const isBytes = typeof body === "string" || Buffer.isBuffer(body);
  const bytes = Buffer.from(isBytes ? body : JSON.stringify(body));
  return Buffer.concat([
    Buffer.from(request("POST", path, ...headers, `Content-Length: ${bytes.length}`)),
    bytes,
  ]);
}

let sent = 1000;
const numbered = (bytes: Bytes) =>
  Buffer.from(bytes.toString("latin1").replaceAll("{nn}", String(++sent)), "latin1");

/** Replaces what differs between two links, webhooks, tokens or moments. */
function withoutIds(response: string): string {
  return (
    response
      .replaceAll(/(lnk|whk)_[0-9A-Z]{26}/g, "$1_…")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "time")
      .replaceAll(/"slug":"\w{7}"|\.com\/\w{7}"|whsec_[\w+/=]+/g, "…")
      .replaceAll(/-\d{4}\b/g, "-n")
      .replaceAll(/^(DPoP-Nonce): .+$/gm, "$1: …")
      // Those of webhooks depend on the time.
      .replaceAll(/^(ETag): "[\w-]{22}"/gm, '$1: "…"')
      .replaceAll(/;r=\d+;t=\d+/g, ";r=…;t=…")
  );
}

const front = await serve();

async function fetchToken(client: Client, fields: Record<string, string> = {}, ...headers: string[]) {
  const { clientId: client_id, clientSecret: client_secret } = client;
  const form = new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret, ...fields });
  const type = "Content-Type: application/x-www-form-urlencoded";
  const response = await send(front.behind, post("/oauth/token", `${form}`, HOST, type, ...headers));
  const { access_token } = JSON.parse(/\{.*\}/.exec(response)?.[0] ?? "{}");
  if (!access_token) throw new Error(response);
  return String(access_token);
}

async function createOrganization(name: string) {
  const { organization, client } = await storage.organizations.create(name, "growth", OPERATOR);
  return { id: organization.id, client: client as Client, token: await fetchToken(client as Client) };
}

const { id: organizationId, client, token } = await createOrganization("Front");
const readToken = await fetchToken(client, { scope: "links:read" });
const mcpToken = await fetchToken(client, { resource: `${BASE}/mcp` });
const proofOf = async (htu: string, claims: object = {}) =>
  `DPoP: ${await signProof(key, { claims: { htm: "POST", htu, ...claims } })}`;
const boundToken = await fetchToken(client, {}, await proofOf(`${BASE}/oauth/token`));
const suspended = await createOrganization("Suspended");
await storage.suspensions.suspend(suspended.id, null, OPERATOR);
const free = await createOrganization("Free");
await storage.organizations.setPlan(free.id, "free", OPERATOR);

test.after.always(close);

const BEARER = `Authorization: Bearer ${token}`;
const NEW = { url: "https://example.com/" };
const links = (body: Bytes | object, ...headers: string[]) =>
  post("/v1/links", body, HOST, BEARER, JSON_TYPE, ...headers);
const withAuthorization = (...headers: string[]) => post("/v1/links", NEW, HOST, JSON_TYPE, ...headers);
const withType = (...headers: string[]) => post("/v1/links", NEW, HOST, BEARER, ...headers);
const at = (path: string, ...headers: string[]) => post(path, NEW, HOST, BEARER, JSON_TYPE, ...headers);
const proved = async (claims: object = {}) =>
  withAuthorization(
    `Authorization: DPoP ${boundToken}`,
    await proofOf(`${BASE}/v1/links`, { ath: athOf(boundToken), ...claims }),
  );
const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));
const large = (bytes: number) => ({ ...NEW, metadata: { text: "x".repeat(bytes) } });

/** Requests that don't reach the application. */
const ORDINARY: Record<string, Bytes | (() => Promise<Bytes>)> = {
  "a link": links(NEW),
  "a link with all fields": links({
    ...NEW,
    slug: "slug-{nn}",
    title: "Grüße ✓",
    tags: ["a", "b", "a"],
    external_id: "id-{nn}",
    metadata: { text: "ü", number: 1.5, flag: true, nothing: null },
    expires_at: "2099-01-31T12:00:00+02:00",
    max_clicks: 5,
    redirect_type: 307,
  }),
  "a webhook": post(
    "/v1/webhooks",
    { url: "https://hooks.example.com/hook-{nn}", events: ["link.created"] },
    HOST,
    BEARER,
    JSON_TYPE,
  ),
  "an invalid URL": links({ url: "ftp://example.com" }),
  "two invalid fields": links({ url: 1, slug: "a b" }),
  "an unknown field": links({ ...NEW, other: 1 }),
  "a reserved slug": links({ ...NEW, slug: "dashboard" }),
  "an array": links([NEW]),
  "a string": links('"text"'),
  "half an object": links('{"url":'),
  "white space": links(" \n"),
  "an empty body": links(""),
  "a byte order mark": links(`\ufeff${JSON.stringify(NEW)}`),
  "invalid UTF-8": links(Buffer.from('{"url":"https://example.com/","title":"\xff\xc3("}', "latin1")),
  "a prototype": links('{"url":"https://example.com/","__proto__":{}}'),
  "a nested prototype": links('{"url":"https://example.com/","metadata":{"\\u005f_proto__":{}}}'),
  "a text like a prototype": links({ ...NEW, title: "__proto__" }),
  "a constructor": links('{"url":"https://example.com/","constructor":{"prototype":{}}}'),
  "a large body": links(large(400)),
  "a body of 64 KB": links(large(2 ** 16 - 61)),
  "a body over 64 KB": links(large(2 ** 16), "Connection: close"),
  "deep JSON": links("[".repeat(30_000), "Connection: close"),
  "101 fields": links(fields(101)),
  "no token": withAuthorization(),
  "an unknown token": withAuthorization("Authorization: Bearer x"),
  "an empty token": withAuthorization("Authorization: Bearer "),
  "another scheme": withAuthorization("Authorization: Basic eDp5"),
  "a scheme in capitals": withAuthorization(`Authorization: BEARER ${token}`),
  "a malformed header": withAuthorization("Authorization: Bearer a b"),
  "two tokens": withAuthorization(BEARER, "authorization: Bearer x"),
  "a token without the scope": withAuthorization(`Authorization: Bearer ${readToken}`),
  "a token for MCP": withAuthorization(`Authorization: Bearer ${mcpToken}`),
  "a suspended organization": withAuthorization(`Authorization: Bearer ${suspended.token}`),
  "the Free plan": withAuthorization(`Authorization: Bearer ${free.token}`),
  "an unbound token as DPoP": withAuthorization(`Authorization: DPoP ${token}`),
  "a bound token as a bearer": withAuthorization(`Authorization: Bearer ${boundToken}`),
  "a bound token without a proof": withAuthorization(`Authorization: DPoP ${boundToken}`),
  "a bound token with a proof": () => proved(),
  "a proof for another URL": () => proved({ htu: `${BASE}/v1/webhooks` }),
  "an old proof": () => proved({ iat: 1 }),
  "no content type": withType(),
  "a form": withType("Content-Type: application/x-www-form-urlencoded"),
  "a charset": withType("Content-Type: application/json; charset=utf-8"),
  "another charset": withType("Content-Type: application/json; charset=utf-16"),
  "an idempotency key": links(NEW, "Idempotency-Key: key-{nn}"),
  "an invalid idempotency key": links(NEW, "Idempotency-Key: a b"),
  "two idempotency keys": links(NEW, "Idempotency-Key: a", "Idempotency-Key: b"),
  "a browser's Accept": links(NEW, "Accept: text/html,*/*;q=0.8"),
  "connection: close": links(NEW, "Connection: close"),
  "expect: 100-continue": links(NEW, "Expect: 100-continue"),
  "an upgrade": links(NEW, "Connection: Upgrade", "Upgrade: websocket"),
  "a forwarded host": links(NEW, "X-Forwarded-Host: other.example.com", "X-Forwarded-For: 192.0.2.1, x"),
  "three in a row": Buffer.concat([links(NEW), links({ url: 1 }), links(NEW)]),
};

/** Requests that the application serves. */
const OTHERS: Record<string, Bytes> = {
  "links in bulk": post("/v1/links/bulk", { links: [NEW, { url: "x" }] }, HOST, BEARER, JSON_TYPE),
  "a query": at("/v1/links?url=x"),
  "an empty query": at("/v1/links?"),
  "a token in the query": at(`/v1/links?access_token=${token}`),
  "a trailing slash": at("/v1/links/"),
  "another case": at("/V1/links"),
  "an encoded path": at("/v1/%6cinks"),
  "two slashes": at("//v1/links"),
  "an absolute URL": at(`${BASE}/v1/links`),
  "an unknown path": at("/v1/unknown"),
  "a path with a parameter": at("/v1/webhooks/whk_1/test"),
  "a browser": links(NEW, `Origin: ${ORIGIN}`),
  "a browser on another origin": links(NEW, "Origin: https://other.example"),
  "another Host": post("/v1/links", NEW, "Host: other.example.com", BEARER, JSON_TYPE),
  "upper-case Host": post("/v1/links", NEW, "Host: LINKS.example.com", BEARER, JSON_TYPE),
  "no Host": post("/v1/links", NEW, BEARER, JSON_TYPE),
  gzip: links(gzipSync(JSON.stringify(NEW)), "Content-Encoding: gzip"),
  "not gzip": links(NEW, "Content-Encoding: gzip"),
  "an unknown encoding": links(NEW, "Content-Encoding: zstd"),
  chunks: `${request("POST", "/v1/links", HOST, BEARER, JSON_TYPE, "Transfer-Encoding: chunked")}1e\r\n${JSON.stringify(NEW)}\r\n0\r\n\r\n`,
  "no body": request("POST", "/v1/links", HOST, BEARER, JSON_TYPE),
  "HTTP/1.0": links(NEW).toString().replace("HTTP/1.1", "HTTP/1.0"),
  ...Object.fromEntries(
    ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => [
      method,
      links(NEW).toString().replace("POST", method),
    ]),
  ),
};

for (const [title, changes] of Object.entries({
  "without rate limits": {},
  "with rate limits": { RATE_LIMIT: "on" },
  "with a host for short links": { SHORT_URL: "https://s.example.com" },
  "behind a proxy": { TRUST_PROXY: "1", ALLOWED_ORIGINS: ORIGIN },
})) {
  test.serial(`the front and the application respond with the same bytes: ${title}`, async (t) => {
    const served = await serve(changes);
    const count = async () => (await storage.links.usage(organizationId)).links;
    for (const [name, given] of Object.entries({ ...ORDINARY, ...OTHERS })) {
      const ask = async (port: number) =>
        withoutIds(await send(port, numbered(typeof given === "function" ? await given() : given)));
      const before = await count();
      const expected = await ask(served.behind);
      const between = await count();
      const reached = served.reached();
      t.is(await ask(served.front), expected, name);
      t.is((await count()) - between, between - before, `links of ${name}`);
      const isOrdinary = Object.hasOwn(ORDINARY, name);
      const last = name.includes("close") || name === "an upgrade" ? 0 : 1;
      if (isOrdinary) t.true(served.reached() - reached <= last, `${name} doesn't reach the application`);
    }
  });
}

test.serial("tokens are issued and introspected without reaching the application", async (t) => {
  const { front, reached } = await serve();
  const { clientId, clientSecret } = client;
  const basic = `Authorization: Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;
  const type = "Content-Type: application/x-www-form-urlencoded;charset=UTF-8";
  const endpoints = { token: "grant_type=client_credentials", introspect: `token=${token}` };
  for (const [endpoint, form] of Object.entries(endpoints)) {
    const before = reached();
    const response = await send(front, post(`/oauth/${endpoint}`, form, HOST, basic, type));
    t.regex(response, /^HTTP\/1.1 200 OK\r\nX-Request-Id: …\r\nX-Content-Type-Options: nosniff\r\n/);
    t.regex(response, /^cache-control: no-store\r$/im);
    t.is(reached() - before, 1, "the last request");
  }
  const metrics = await send(front, request("GET", "/metrics", "Host: localhost"));
  t.regex(metrics, /linkgate_http_requests_total\{method="POST",route="\/oauth\/token",status="200"\} 1/);
  t.regex(metrics, /linkgate_grants_total\{grant_type="client_credentials"\} 1/);
  t.regex(metrics, /linkgate_introspections_total\{result="active"\} 1/);
});

test.serial("an exceeded rate limit is answered with the same bytes", async (t) => {
  const served = await serve({ RATE_LIMIT: "on" });
  const { token } = await createOrganization("Limited");
  const bytes = post("/v1/links", {}, HOST, `Authorization: Bearer ${token}`, JSON_TYPE);
  const flood = Buffer.concat(Array.from({ length: 1000 }, () => bytes));
  await Promise.all(Array.from({ length: 3 }, () => send(served.front, flood)));
  const limited = (port: number) => send(port, bytes).then((text) => text.replaceAll(/\d+ seconds/g, "…"));
  const expected = withoutIds(await limited(served.behind)).replaceAll(/(Retry-After): .+/g, "$1: …");
  t.regex(expected, /^HTTP\/1.1 429 /);
  t.is(withoutIds(await limited(served.front)).replaceAll(/(Retry-After): .+/g, "$1: …"), expected);
});

test.serial("an idempotent request is replayed with the same bytes by both", async (t) => {
  const { front, behind } = await serve();
  const bytes = links(NEW, "Idempotency-Key: once");
  const replays = [];
  for (const port of [front, behind, front]) replays.push(await send(port, bytes));
  const [first = "", second, third] = replays;
  t.is(second, third);
  t.is(second?.replace("Idempotency-Replayed: true\r\n", ""), first);
});

test.serial("requests that the front serves are part of the metrics", async (t) => {
  const { front } = await serve();
  await send(front, links(NEW));
  await send(front, links({}));
  const metrics = await send(front, request("GET", "/metrics", "Host: localhost"));
  t.regex(metrics, /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="201"\} 1/);
  t.regex(metrics, /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="422"\} 1/);
});

test.serial("a request whose client disconnects while its body is read ends", async (t) => {
  const { front } = await serve();
  await sendPart(front);
  t.true(await isCounted(front));
});

test.serial("a request whose client disconnects while its token is looked up ends", async (t) => {
  const { promise: disconnected, resolve: disconnect } = Promise.withResolvers<void>();
  const findActiveToken: typeof storage.findActiveToken = async (text) => {
    await disconnected;
    return storage.findActiveToken(text);
  };
  const { front } = await serve({}, { ...storage, findActiveToken });
  await sendPart(front);
  disconnect();
  t.true(await isCounted(front));
});

const REJECTED = /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="400"\} 1/;

/** Returns whether the metrics count the request soon. */
function isCounted(port: number): Promise<boolean> {
  return until(async () => {
    const metrics = await send(port, request("GET", "/metrics", "Host: localhost"));
    return REJECTED.test(metrics) || undefined;
  });
}

/** Sends a part of a request, and resolves when the server has closed the connection. */
async function sendPart(port: number) {
  const socket = connect(port, "127.0.0.1");
  socket.write(links(NEW).subarray(0, -5));
  await once(socket.end().resume(), "close");
}
