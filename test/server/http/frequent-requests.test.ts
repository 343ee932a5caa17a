import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";
import { createSites, HOST, request, send } from "../../harness/site.ts";
import { until } from "../../harness/webhooks.ts";

export const databases = "all";

const { storage, serve, close } = await createSites();

const LOOKUP_MS = 100;
const JSON_TYPE = "Content-Type: application/json";
const { organization, client } = await storage.organizations.create("Frequent", "growth", OPERATOR);
const { clientId, clientSecret } = client as { clientId: string; clientSecret: string };
const BASIC = `Authorization: Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;

async function createLink(slug: string, changes: object = {}) {
  const link = await storage.links.create(organization.id, OPERATOR, linkFields({ slug, ...changes }));
  if ("taken" in link) throw new Error(`${slug} is taken`);
}
await createLink("plain");
await createLink("archived", { archived: true });
await createLink("used-up", { maxClicks: 0 });

const get = (path: string) => request("GET", path, HOST);
const post = (path: string, body: string, ...headers: string[]) =>
  request("POST", path, HOST, ...headers, `Content-Length: ${Buffer.byteLength(body)}`) + body;
const postForm = (path: string, form: string) =>
  post(path, form, BASIC, "Content-Type: application/x-www-form-urlencoded;charset=UTF-8");

async function fetchToken(port: number): Promise<string> {
  const response = await send(port, postForm("/oauth/token", "grant_type=client_credentials"));
  return JSON.parse(/\{"access_token.*?\}/.exec(response)?.[0] ?? "{}").access_token;
}
const token = await fetchToken((await serve()).port);
test.after.always(close);

const links = (body: object) =>
  post("/v1/links", JSON.stringify(body), `Authorization: Bearer ${token}`, JSON_TYPE);

const metricsOf = (port: number) => send(port, request("GET", "/metrics", "Host: localhost"));

test.serial(
  "tokens are issued and introspected with these headers, and are part of the metrics",
  async (t) => {
    const { port } = await serve();
    const endpoints = { token: "grant_type=client_credentials", introspect: `token=${token}` };
    for (const [endpoint, form] of Object.entries(endpoints)) {
      const response = await send(port, postForm(`/oauth/${endpoint}`, form));
      t.regex(response, /^HTTP\/1.1 200 OK\r\nX-Request-Id: …\r\nX-Content-Type-Options: nosniff\r\n/);
      t.regex(response, /^cache-control: no-store\r$/im);
    }
    const metrics = await metricsOf(port);
    t.regex(metrics, /linkgate_http_requests_total\{method="POST",route="\/oauth\/token",status="200"\} 1/);
    t.regex(metrics, /linkgate_grants_total\{grant_type="client_credentials"\} 1/);
    t.regex(metrics, /linkgate_introspections_total\{result="active"\} 1/);
  },
);

test.serial("a redirect has these headers, and is part of the metrics", async (t) => {
  const { port } = await serve();
  const response = await send(port, get("/plain"));
  t.deepEqual(response.split("\r\n\r\n")[0]?.split("\r\n"), [
    "HTTP/1.1 302 Found",
    "X-Request-Id: …",
    "X-Content-Type-Options: nosniff",
    "Strict-Transport-Security: max-age=63072000; includeSubDomains",
    "Location: https://example.com/",
    "Cache-Control: private, no-store",
    "X-Robots-Tag: noindex",
    "Content-Length: 0",
    "Date: …",
    "Connection: keep-alive",
    "Keep-Alive: timeout=1",
  ]);
  const metrics = await metricsOf(port);
  t.regex(metrics, /linkgate_http_requests_total\{method="GET",route="\/:slug",status="302"\} 1/);
});

test.serial("new and rejected links are part of the metrics", async (t) => {
  const { port } = await serve();
  await send(port, links({ url: "https://example.com/" }));
  await send(port, links({}));
  const metrics = await metricsOf(port);
  t.regex(metrics, /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="201"\} 1/);
  t.regex(metrics, /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="422"\} 1/);
});

test.serial("the duration of a redirect that fails includes its lookup", async (t) => {
  const slow = { ...storage, links: { ...storage.links, resolve: () => sleep(LOOKUP_MS, undefined) } };
  const { port } = await serve({}, slow);
  await send(port, get("/unknown"));
  const [, seconds] =
    /linkgate_http_request_duration_seconds_sum\{[^}]*route="\/:slug"[^}]*\} (\S+)/.exec(
      await metricsOf(port),
    ) ?? [];
  // A timer may fire up to a millisecond early.
  t.true(Number(seconds) * 1000 > LOOKUP_MS - 2, seconds);
});

// On SQLite, a lookup reads the version of links, and the link itself unless it is cached.
const LOOKUP = engine === "sqlite" ? /link_changes/ : /slug/;

test.serial("a link that isn't available is looked up once", async (t) => {
  const { port } = await serve();
  for (const slug of ["unknown", "archived", "used-up"]) {
    const statements: string[] = [];
    const stop = storage.onStatement((sql) => statements.push(sql));
    await send(port, get(`/${slug}`));
    stop();
    t.is(statements.filter((sql) => LOOKUP.test(sql)).length, 1, slug);
  }
});

test.serial("a request whose client disconnects while its body is read ends", async (t) => {
  const { port } = await serve();
  await sendPart(port);
  t.true(await isCounted(port));
});

test.serial("a request whose client disconnects while its token is looked up ends", async (t) => {
  const { promise: disconnected, resolve: disconnect } = Promise.withResolvers<void>();
  const findActiveToken: typeof storage.findActiveToken = async (text) => {
    await disconnected;
    return storage.findActiveToken(text);
  };
  const { port } = await serve({}, { ...storage, findActiveToken });
  await sendPart(port);
  disconnect();
  t.true(await isCounted(port));
});

const REJECTED = /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="400"\} 1/;

/** Returns whether the metrics count the request soon. */
function isCounted(port: number): Promise<boolean> {
  return until(async () => REJECTED.test(await metricsOf(port)) || undefined);
}

/** Sends a part of a request, and resolves when the server has closed the connection. */
async function sendPart(port: number) {
  const socket = connect(port, "127.0.0.1");
  socket.write(links({ url: "https://example.com/" }).slice(0, -5));
  await once(socket.end().resume(), "close");
}
