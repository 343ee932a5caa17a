import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { type Span, startCollector } from "../harness/collector.ts";
import { stopPrograms } from "../harness/program.ts";
import { startReceiver } from "../harness/receiver.ts";
import { startOnNewDatabase, TRACE, TRACEPARENT, tracedBy } from "../harness/traced-server.ts";
import { createWebhook } from "../harness/webhooks.ts";

test.after.always(stopPrograms);

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
