import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { attributesOf, type Span, startCollector } from "../harness/collector.ts";
import { engine } from "../harness/database/test-database.ts";
import { endingOf, startServer, stopPrograms } from "../harness/program.ts";
import { startReceiver } from "../harness/receiver.ts";
import { bearer, postForm } from "../harness/service.ts";
import { PARENT, startOnNewDatabase, TRACE, TRACEPARENT, tracedBy } from "../harness/traced-server.ts";
import { createWebhook } from "../harness/webhooks.ts";

export const databases = "all";

test.after.always(stopPrograms);

test.serial("requests, statements and deliveries are traced, and contain no secret", async (t) => {
  const collector = await startCollector();
  const receiver = await startReceiver();
  const { url, createOrganization, token, stop } = await startOnNewDatabase({
    ...tracedBy(collector),
    OTEL_SERVICE_NAME: "links",
  });
  const app = await createOrganization();
  const access = await token(app);
  const api = apiAt(url, access);
  const { body: link } = await api.send<{ slug: string }>("POST", "/v1/links?secret-query=1", {
    json: { url: "https://example.com/secret-target" },
    headers: { traceparent: TRACEPARENT },
  });
  await fetch(`${url}/${link.slug}?secret-click=1`, {
    redirect: "manual",
    headers: { traceparent: TRACEPARENT },
  });
  await fetch(`${url}/oauth/token`, { method: "POST", body: "grant_type=secret-grant" });
  receiver.exposeVerification("/secret-hook");
  const webhook = await createWebhook(api, receiver.url("/secret-hook"), ["webhook.test"]);
  await receiver.waitFor("/secret-hook", 1);

  const create = await collector.waitForSpan(({ name }) => name === "POST /v1/links");
  t.is(create.traceId, TRACE);
  t.is(create.parentSpanId, PARENT);
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
  const [received] = receiver.received("/secret-hook");
  t.is(received?.headers.traceparent, `00-${delivery.traceId}-${delivery.spanId}-01`);
  t.like(
    attributesOf(collector.payloads.find((one) => one.resourceSpans)?.resourceSpans?.[0]?.resource as never),
    {
      "service.name": "links",
    },
  );

  const { code, stderr } = await stop();
  t.deepEqual([code, stderr], [0, ""]);
  const sent = collector.bodies.join("\n");
  const secrets = [access, app.clientSecret, webhook.secret as string, link.slug, "secret-"];
  for (const secret of secrets) t.false(sent.includes(secret), secret);
  collector.close();
  await receiver.close();
});

if (engine === "sqlite") {
  test.serial(
    "a resource server passes the trace of a request on to the introspection endpoint",
    async (t) => {
      const collector = await startCollector();
      const passedOn: (string | undefined)[] = [];
      const issuer = createServer((request, response) => {
        passedOn.push(request.headers.traceparent as string | undefined);
        response.writeHead(200, { "content-type": "application/json" }).end('{"active":false}');
      });
      await once(issuer.listen(0, "127.0.0.1"), "listening");
      const { url, stop } = await startOnNewDatabase({
        ...tracedBy(collector),
        INTROSPECTION_URL: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/oauth/introspect`,
        INTROSPECTION_CLIENT_SECRET: "the secret of the resource server",
      });
      const headers = { ...bearer("lga_a-token"), traceparent: TRACEPARENT };
      const { status } = await fetch(`${url}/v1/links`, { headers });
      t.is(status, 401);
      const { spanId } = await collector.waitForSpan(({ name }) => name === "GET /v1/links");
      const call = await collector.waitForSpan(({ name }) => name === "POST");
      t.is(call.parentSpanId, spanId);
      t.deepEqual(passedOn, [`00-${TRACE}-${call.spanId}-01`]);
      await stop();
      issuer.close();
      collector.close();
    },
  );

  test.serial(
    "traces are sent as Protocol Buffers by default, and only those that are exported",
    async (t) => {
      const collector = await startCollector();
      const { url, stop } = await startOnNewDatabase({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
        OTEL_BSP_SCHEDULE_DELAY: "50",
      });
      await fetch(`${url}/healthz`);
      await postForm(`${url}/oauth/token`, { grant_type: "client_credentials" });
      await collector.waitForPath("/v1/traces");
      const { code } = await stop();
      t.is(code, 0);
      t.deepEqual([...new Set(collector.contentTypes)], ["application/x-protobuf"]);
      t.regex(collector.bodies.join(), /POST \/oauth\/token/);
      t.notRegex(collector.bodies.join(), /healthz/);
      collector.close();
    },
  );

  test.serial("a collector that can't be reached neither fails requests nor the shutdown", async (t) => {
    const { url, stop } = await startOnNewDatabase({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
    t.is((await fetch(`${url}/oauth/jwks`)).status, 200);
    t.is((await stop()).code, 0);
  });

  test.serial(
    "without OTEL_ variables, and when disabled, the SDK of OpenTelemetry isn't loaded",
    async (t) => {
      const report = `import { registerHooks } from "node:module";
      registerHooks({ load(url, context, next) {
        if (url.includes("/@opentelemetry/")) process._rawDebug("loaded " + url);
        return next(url, context);
      } });`;
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(report)}`;
      const loaded = async (settings: Record<string, string>) => {
        const { url, stop } = await startOnNewDatabase({ NODE_OPTIONS, LOG_LEVEL: "silent", ...settings });
        await fetch(`${url}/oauth/jwks`);
        const packages = (await stop()).stderr.matchAll(/loaded .*\/@opentelemetry\/([\w-]+)\//g);
        return [...new Set([...packages].map(([, name]) => name))].sort();
      };
      const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
      // prom-client always loads the interfaces.
      t.deepEqual(await loaded({}), ["api"]);
      t.deepEqual(await loaded({ ...endpoint, OTEL_SDK_DISABLED: "true" }), ["api"]);
      t.true((await loaded(endpoint)).includes("sdk-trace"), "the test can tell");
    },
  );

  test.serial("invalid variables are named at startup", async (t) => {
    const { code, stderr } = await endingOf(
      startServer({
        settings: {
          OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
          OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
          OTEL_TRACES_SAMPLER: "sometimes",
          OTEL_BSP_SCHEDULE_DELAY: "soon",
          OTEL_METRICS_EXPORTER: "otlp",
        },
      }),
    );
    t.is(code, 1);
    t.regex(stderr, /OTEL_EXPORTER_OTLP_PROTOCOL must be http\/protobuf or http\/json/);
    t.regex(stderr, /OTEL_TRACES_SAMPLER must be one of/);
    t.regex(stderr, /OTEL_BSP_SCHEDULE_DELAY must be a positive whole number/);
    t.regex(stderr, /OTEL_METRICS_EXPORTER must be none/);
  });
}

const headerOf = ({ traceId, spanId }: Span) => `00-${traceId}-${spanId}-01`;

/** Starts a traced server with a webhook for events of links. */
async function startWithWebhook(settings: Record<string, string> = {}) {
  const collector = await startCollector();
  const receiver = await startReceiver();
  const server = await startOnNewDatabase({ ...tracedBy(collector), ...settings });
  const app = await server.createOrganization();
  const api = apiAt(server.url, await server.token(app));
  await createWebhook(api, receiver.url("/hook"), ["link.created", "link.clicked"]);
  return {
    ...server,
    collector,
    receiver,
    api,
    createLink: (traceparent: string) =>
      api.send<{ slug: string }>("POST", "/v1/links", {
        json: { url: "https://example.com/" },
        headers: { traceparent },
      }),
    /** Waits for the span whose `traceparent` a request to the webhook had. */
    deliveryOf: (traceparent: string | undefined) =>
      collector.waitForSpan((span) => span.name === "deliver webhook" && headerOf(span) === traceparent),
    async close() {
      await server.stop();
      collector.close();
      await receiver.close();
    },
  };
}

test.serial(
  "each attempt at a delivery belongs to the trace of the request that caused the event",
  async (t) => {
    const { collector, receiver, createLink, deliveryOf, close } = await startWithWebhook();
    receiver.respond("/hook", (response) => {
      const isFirst = receiver.received("/hook").length === 1;
      response.writeHead(isFirst ? 500 : 204).end();
    });
    await createLink(TRACEPARENT);
    const attempts = await receiver.waitFor("/hook", 2);
    t.is(attempts[0]?.headers["webhook-id"], attempts[1]?.headers["webhook-id"]);

    const cause = await collector.waitForSpan(({ name }) => name === "POST /v1/links");
    t.is(cause.traceId, TRACE);
    const spans = [];
    for (const { headers } of attempts) {
      const span = await deliveryOf(headers.traceparent);
      t.is(headers.tracestate, undefined);
      t.is(span.traceId, TRACE);
      t.is(span.parentSpanId, cause.spanId);
      t.like(span.links, [{ traceId: TRACE, spanId: cause.spanId }]);
      spans.push(span);
    }
    t.not(spans[0]?.spanId, spans[1]?.spanId);
    t.deepEqual(
      spans.map(({ status }) => status.code ?? 0),
      [2, 0],
    );
    await close();
  },
);

test.serial("the delivery of a single click belongs to the trace of the redirect", async (t) => {
  const { url, collector, receiver, createLink, deliveryOf, close } = await startWithWebhook();
  const { body: link } = await createLink(`00-${"1".repeat(32)}-${"2".repeat(16)}-01`);
  await receiver.waitFor("/hook", 1);
  await fetch(`${url}/${link.slug}`, { redirect: "manual", headers: { traceparent: TRACEPARENT } });
  const [created, clicked] = await receiver.waitFor("/hook", 2);
  t.is(created?.body.type, "link.created");
  t.is(clicked?.body.type, "link.clicked");
  const redirect = await collector.waitForSpan(({ name }) => name === "GET /:slug");
  const span = await deliveryOf(clicked?.headers.traceparent);
  t.is(span.traceId, TRACE);
  t.is(span.parentSpanId, redirect.spanId);
  await close();
});

test.serial("a delivery whose request isn't recorded has a trace of its own", async (t) => {
  const { receiver, createLink, deliveryOf, close } = await startWithWebhook();
  await createLink(TRACEPARENT.replace(/01$/, "00"));
  const [{ headers } = { headers: {} }] = await receiver.waitFor("/hook", 1);
  const span = await deliveryOf((headers as Record<string, string>).traceparent);
  t.not(span.traceId, TRACE);
  t.falsy(span.parentSpanId);
  t.deepEqual(span.links ?? [], []);
  await close();
});
