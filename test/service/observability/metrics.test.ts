import test from "ava";
import { sendRaw } from "../../harness/clients/raw.ts";
import { domainFields } from "../../harness/database/storage.ts";
import { storeDomain } from "../../harness/domains.ts";
import { freePort } from "../../harness/program.ts";
import { bearer, OPERATOR, startTestService } from "../../harness/service.ts";

const metricsPort = await freePort();
const [service, apart] = await Promise.all([
  startTestService(),
  startTestService({ METRICS_PORT: String(metricsPort), TRUST_PROXY: "1" }),
]);

const FOREIGN = ["host", "evil.test"];

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
  const places = ["/v1", "/oauth", "/.well-known", "", "/made", "/docs"];
  for (const path of places.map((place) => `${place}/madeup`)) {
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
  for (const path of ["/", "/v1/links", "/oauth/token", "/.well-known/openid-configuration"])
    t.is((await sendRaw(metrics, path)).status, 404, path);
  t.is((await sendRaw(apart.url, "/healthz")).status, 200);
});

test("/healthz/domain says for which hosts a proxy may get a certificate, on METRICS_PORT if there is one", async (t) => {
  for (const [{ storage, createOrganization, url }, probes] of [
    [service, service.url],
    [apart, `http://127.0.0.1:${metricsPort}`],
  ] as const) {
    const { id } = await createOrganization();
    await storeDomain(storage, id, "go.acme.example");
    await storage.domains.create({ organizationId: id, actor: OPERATOR }, domainFields("new.acme.example"));
    const ask = async (query: string, method = "GET") =>
      (await sendRaw(probes, `/healthz/domain${query}`, { method, headers: FOREIGN })).status;
    // Caddy adds `domain`.
    for (const query of ["?name=go.acme.example", "?domain=go.acme.example", "?name=GO.acme.example."])
      t.is(await ask(query), 200, query);
    t.is(await ask("?name=go.acme.example", "HEAD"), 200);
    t.is(await ask("?name=go.acme.example", "POST"), 405);
    const others = ["new.acme.example", "acme.example", "x.go.acme.example", new URL(url).host];
    for (const name of [...others, "", "%00", "a".repeat(5000)])
      t.is(await ask(`?name=${name}`), 404, name.slice(0, 30));
    for (const query of ["", "?name=go.acme.example&name=go.acme.example", "?name[]=go.acme.example"])
      t.is(await ask(query), 404, query);
    await storage.organizations.remove(id, OPERATOR);
    t.is(await ask("?name=go.acme.example"), 404, "its organization is deleted");
  }
  t.is((await sendRaw(apart.url, "/healthz/domain?name=go.acme.example")).status, 404);
});

const PATHS = [
  ...["/", "/some-slug", "/v1/links", "/mcp", "/oauth/authorize", "/oauth/jwks"],
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/interaction/abc",
  "/auth/reset-password/abc",
  "/oauth/authorize?client_id=x&redirect_uri=https://app.example.com/cb",
];

const SPOOFED = [
  ["x-forwarded-host", "evil.test"],
  ["forwarded", "host=evil.test;proto=https"],
  ["x-forwarded-proto", "https", "x-forwarded-host", "evil.test", "x-forwarded-port", "666"],
  ["x-original-url", "/evil.test", "x-rewrite-url", "/evil.test"],
];

for (const [name, target] of [
  ["no proxy", service],
  ["TRUST_PROXY=1", apart],
] as const)
  test(`the values of ${name} appear in no response`, async (t) => {
    for (const path of PATHS) {
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
