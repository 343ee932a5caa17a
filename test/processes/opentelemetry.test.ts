import test from "ava";
import { apiAt, type LinkBody } from "../harness/clients/api.ts";
import { startApp } from "../harness/clients/app-server.ts";
import { attributesOf, PARENT, startCollector, TRACE, TRACEPARENT, tracedBy } from "../harness/collector.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import { bearer, postForm } from "../harness/service.ts";
import { createWebhook, startReceiver } from "../harness/webhooks.ts";

test.serial("requests, statements and deliveries are traced, and contain no secret", async (t) => {
  const collector = await startCollector();
  const receiver = await startReceiver();
  const settings = { ...tracedBy(collector), OTEL_SERVICE_NAME: "links" };
  const { url, createOrganization, token, stop } = await startOnNewDatabase(settings);
  const app = await createOrganization();
  const access = await token(app);
  const api = apiAt(url, access);
  const post = (path: string, target: string, traceparent = TRACEPARENT) =>
    api.send<LinkBody>("POST", path, { json: { url: target }, headers: { traceparent } });
  const { slug } = (await post("/v1/links?secret-query=1", "https://example.com/secret-target")).body;
  const headers = { traceparent: TRACEPARENT };
  await fetch(`${url}/${slug}?secret-click=1`, { redirect: "manual", headers });
  await fetch(`${url}/oauth/token`, { method: "POST", body: "grant_type=secret-grant" });
  receiver.exposeVerification("/secret-hook");
  const webhook = await createWebhook(api, receiver.url("/secret-hook"));
  const [received] = await receiver.waitFor("/secret-hook", 1);
  await post("/v1/links", "https://example.com/secret-cause");
  const [, caused] = await receiver.waitFor("/secret-hook", 2);
  t.true(caused?.headers.traceparent?.startsWith(`00-${TRACE}-`), "the trace of the request that caused it");

  const create = await collector.waitForSpan(({ name }) => name === "POST /v1/links");
  t.like(create, { traceId: TRACE, parentSpanId: PARENT });
  t.like(attributesOf(create), {
    "http.route": "/v1/links",
    "http.request.method": "POST",
    "http.response.status_code": 201,
  });
  const redirect = await collector.waitForSpan(({ name }) => name === "GET /:slug");
  t.is(redirect.traceId, TRACE);
  t.is(attributesOf(redirect)["http.response.status_code"], 302);
  await collector.waitForSpan(
    (span) =>
      span.name === "SELECT" &&
      span.parentSpanId === redirect.spanId &&
      /links/.test(String(attributesOf(span)["db.query.text"])),
  );
  const delivery = await collector.waitForSpan(({ name }) => name === "deliver webhook");
  t.is(received?.headers.traceparent, `00-${delivery.traceId}-${delivery.spanId}-01`);
  const resource = collector.payloads.find((one) => one.resourceSpans)?.resourceSpans?.[0]?.resource;
  t.like(attributesOf(resource as never), { "service.name": "links" });

  await post("/v1/links", "https://example.com/", TRACEPARENT.replace(/01$/, "00"));
  const [, , own] = await receiver.waitFor("/secret-hook", 3);
  t.false(own?.headers.traceparent?.includes(TRACE), "a request that isn't recorded passes no trace on");

  t.like(await stop(), { code: 0, stderr: "" });
  const sent = collector.bodies.join("\n");
  const secrets = [access, app.clientSecret, webhook.secret as string, slug, "secret-"];
  for (const secret of secrets) t.false(sent.includes(secret), secret);
});

test.serial("a resource server passes the trace of a request on to the introspection endpoint", async (t) => {
  const collector = await startCollector();
  const passedOn: unknown[] = [];
  const issuer = await startApp((request, response) => {
    passedOn.push(request.headers.traceparent);
    response.writeHead(200, { "content-type": "application/json" }).end('{"active":false}');
  });
  const { url, stop } = await startOnNewDatabase({
    ...tracedBy(collector),
    INTROSPECTION_URL: `${issuer.url}/oauth/introspect`,
    INTROSPECTION_CLIENT_SECRET: "the secret of the resource server",
  });
  const headers = { ...bearer("lga_a-token"), traceparent: TRACEPARENT };
  t.is((await fetch(`${url}/v1/links`, { headers })).status, 401);
  const { spanId } = await collector.waitForSpan(({ name }) => name === "GET /v1/links");
  const call = await collector.waitForSpan(({ name }) => name === "POST");
  t.is(call.parentSpanId, spanId);
  t.deepEqual(passedOn, [`00-${TRACE}-${call.spanId}-01`]);
  await stop();
});

test.serial("traces are sent as Protocol Buffers by default, and only those that are exported", async (t) => {
  const collector = await startCollector();
  const endpoint = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` };
  const { url, stop } = await startOnNewDatabase({ ...endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" });
  await fetch(`${url}/healthz`);
  await postForm(`${url}/oauth/token`, { grant_type: "client_credentials" });
  await collector.waitForPath("/v1/traces");
  t.is((await stop()).code, 0);
  t.deepEqual([...new Set(collector.contentTypes)], ["application/x-protobuf"]);
  t.regex(collector.bodies.join(), /POST \/oauth\/token/);
  t.notRegex(collector.bodies.join(), /healthz/);
});

test.serial("without OTEL_ variables, no SDK is loaded, and an absent collector fails nothing", async (t) => {
  const report = `import { registerHooks } from "node:module";
    registerHooks({ load(url, context, next) {
      if (url.includes("/@opentelemetry/")) process._rawDebug("loaded " + url);
      return next(url, context);
    } });`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(report)}`;
  const loaded = async (settings: Record<string, string>) => {
    const { url, stop } = await startOnNewDatabase({ NODE_OPTIONS, LOG_LEVEL: "silent", ...settings });
    t.is((await fetch(`${url}/oauth/jwks`)).status, 200);
    const { code, stderr } = await stop();
    t.is(code, 0);
    const packages = stderr.matchAll(/loaded .*\/@opentelemetry\/([\w-]+)\//g);
    return [...new Set([...packages].map(([, name]) => name))].sort();
  };
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
  // prom-client always loads the interfaces.
  t.deepEqual(await loaded({}), ["api"]);
  t.true((await loaded(endpoint)).includes("sdk-trace"), "the test can tell");
});
