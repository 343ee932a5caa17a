import test from "ava";
import knexFactory from "knex";
import Koa from "koa";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { trustProxies } from "../../../server/http/client-ip.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { freePort } from "../../harness/port.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const metricsPort = await freePort();
const [service, apart] = await Promise.all([
  startTestService(),
  startTestService({ METRICS_PORT: String(metricsPort), TRUST_PROXY: "1" }),
]);
test.after.always(() => Promise.all([service.close(), apart.close()]));

const FOREIGN = ["host", "evil.test"];
const { host } = new URL(service.url);

test("/healthz, /readyz and /metrics respond for any Host", async (t) => {
  for (const headers of [[], FOREIGN]) {
    t.is((await sendRaw(service.url, "/healthz", { headers })).text, '{"status":"ok"}');
    t.is((await sendRaw(service.url, "/readyz", { headers })).text, '{"status":"ready"}');
    const metrics = await sendRaw(service.url, "/metrics", { headers });
    t.is(metrics.status, 200);
    t.regex(metrics.headers["content-type"] ?? "", /^text\/plain/);
    t.regex(metrics.text, /^linkgate_process_cpu_seconds_total /m);
  }
});

test("/metrics counts requests by method, route and status", async (t) => {
  const token = await service.token(await service.createOrganization());
  await fetch(`${service.url}/v1/links`, { headers: bearer(token) });
  await fetch(`${service.url}/v1/links/lnk_1`, { headers: bearer(token) });
  const { text } = await sendRaw(service.url, "/metrics");
  t.regex(text, /^linkgate_http_requests_total\{method="GET",route="\/v1\/links",status="200"\} 1$/m);
  t.regex(text, /^linkgate_http_requests_total\{method="GET",route="\/v1\/links\/:id",status="404"\} 1$/m);
  t.regex(text, /^linkgate_http_requests_total\{method="POST",route="\/oauth\/token",status="200"\} \d+$/m);
  t.regex(text, /^linkgate_http_request_duration_seconds_count\{route="\/v1\/links"\} \d+$/m);
});

test("made-up paths create no labels with any status", async (t) => {
  for (const path of [
    "/v1/madeup",
    "/oauth/madeup",
    "/.well-known/madeup",
    "/madeup",
    "/made/up",
    "/docs/madeup",
  ]) {
    await sendRaw(service.url, path);
    await sendRaw(service.url, path, { headers: FOREIGN });
    await sendRaw(service.url, `${path}?token=madeup`, { method: "POST" });
  }
  t.notRegex((await sendRaw(service.url, "/metrics")).text, /madeup/);
});

test("with METRICS_PORT, that port serves /metrics and nothing else, and the main port doesn't serve it", async (t) => {
  const metrics = `http://127.0.0.1:${metricsPort}`;
  t.is((await sendRaw(apart.url, "/metrics")).status, 404);
  t.is((await sendRaw(apart.url, "/metrics", { headers: FOREIGN })).status, 421);
  for (const headers of [[], FOREIGN]) {
    const answer = await sendRaw(metrics, "/metrics", { headers });
    t.is(answer.status, 200);
    t.regex(answer.text, /linkgate_http_requests_total/);
  }
  for (const path of ["/", "/v1/links", "/oauth/token", "/.well-known/openid-configuration"]) {
    t.is((await sendRaw(metrics, path)).status, 404, path);
  }
  t.is((await sendRaw(apart.url, "/healthz")).status, 200);
});

const PATHS = [
  "/",
  "/some-slug",
  "/v1/links",
  "/mcp",
  "/oauth/authorize",
  "/oauth/jwks",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-authorization-server",
  "/.well-known/oauth-protected-resource",
  "/interaction/abc",
  "/auth/reset-password/abc",
  "/assets/style.css",
];

test("a foreign Host gets 421 at every other path", async (t) => {
  const hosts = [
    "evil.test",
    `evil.test:${service.url.split(":")[2]}`,
    "localhost",
    "localhost:1",
    `${host}.evil.test`,
  ];
  for (const path of PATHS) {
    for (const name of [...hosts, `evil.test@${host}`, ""]) {
      const { status, text, headers } = await sendRaw(service.url, path, { headers: ["host", name] });
      t.is(status, 421, `${name} ${path}`);
      t.is(headers.location, undefined);
      t.false(text.includes("evil"), `${name} ${path}`);
    }
  }
});

test("the Host is compared case-insensitively", async (t) => {
  const { status } = await sendRaw(service.url, "/oauth/jwks", { headers: ["host", host.toUpperCase()] });
  t.is(status, 200);
});

const SPOOFED = [
  ["x-forwarded-host", "evil.test"],
  ["forwarded", "host=evil.test;proto=https"],
  ["x-forwarded-proto", "https", "x-forwarded-host", "evil.test", "x-forwarded-port", "666"],
  ["x-host", "evil.test", "x-original-host", "evil.test"],
  ["x-original-url", "/evil.test", "x-rewrite-url", "/evil.test"],
  ["x-forwarded-prefix", "/evil.test"],
];

for (const [name, target] of [
  ["no proxy", service],
  ["TRUST_PROXY=1", apart],
] as const) {
  test(`the values of ${name} appear in no response`, async (t) => {
    const paths = [...PATHS, "/oauth/authorize?client_id=x&redirect_uri=https://app.example.com/cb"];
    for (const path of paths) {
      const plain = await sendRaw(target.url, path);
      for (const headers of SPOOFED) {
        const answer = await sendRaw(target.url, path, { headers });
        const message = `${headers.join(" ")} ${path}`;
        t.is(answer.status, plain.status, message);
        t.false(/evil|:666/.test(JSON.stringify(answer)), message);
        t.is(answer.headers.location, plain.headers.location, message);
        if (path.startsWith("/.well-known")) t.is(answer.text, plain.text, message);
      }
    }
  });
}

test("an absolute request target doesn't change the URLs in responses", async (t) => {
  for (const path of ["/.well-known/openid-configuration", "/v1/links"]) {
    const answer = await sendRaw(service.url, `http://evil.test${path}`);
    t.false(JSON.stringify(answer).includes("evil.test"), path);
  }
});

const FORWARDED: [proxies: number, header: string | undefined, address: string][] = [
  [0, "203.0.113.1", "direct"],
  [1, undefined, "direct"],
  [1, "203.0.113.1", "203.0.113.1"],
  [1, "spoofed, 203.0.113.1", "203.0.113.1"],
  [2, "spoofed, 203.0.113.1, 10.0.0.1", "203.0.113.1"],
  [2, "10.0.0.1", "direct"],
  [1, " , 203.0.113.1 ,", "203.0.113.1"],
  [1, "2001:db8::1", "2001:db8::1"],
  [1, "2001:0DB8:0:0::1", "2001:db8::1"],
  [1, "[2001:db8::1]", "2001:db8::1"],
  [1, "[2001:db8::1]:5678", "2001:db8::1"],
  [1, "203.0.113.1:5678", "203.0.113.1"],
  [1, "::ffff:203.0.113.1", "203.0.113.1"],
  [1, "unknown", "direct"],
];

for (const [proxies, header, address] of FORWARDED) {
  test(`behind ${proxies} proxies, X-Forwarded-For "${header ?? ""}" is ${address}`, async (t) => {
    const app = new Koa();
    trustProxies(app, proxies);
    app.use((ctx) => {
      ctx.body = ctx.ip;
    });
    const server = app.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    const headers = header === undefined ? [] : ["x-forwarded-for", header, "x-real-ip", "198.51.100.9"];
    const { text } = await sendRaw(`http://127.0.0.1:${port}`, "/", { headers });
    t.is(text, address === "direct" ? "127.0.0.1" : address);
    server.close();
  });
}

test("/readyz is 503 while migrations are pending, without details", async (t) => {
  const database = await createTestDatabase();
  const behind = await startTestService({
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: Buffer.alloc(32, 3).toString("base64url"),
  });
  const knex = knexFactory(knexConfig(database.url));
  await knex("knex_migrations").delete();
  const answer = await sendRaw(behind.url, "/readyz");
  t.is(answer.status, 503);
  t.is(answer.text, '{"status":"not migrated"}');
  t.is((await sendRaw(behind.url, "/healthz")).status, 200, "the process is alive");
  await knex.destroy();
  await behind.close();
  await database.drop();
});
