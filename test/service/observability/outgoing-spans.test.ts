import type { IncomingHttpHeaders } from "node:http";
import test, { type ExecutionContext } from "ava";
import { authorizeUrl } from "../../harness/clients/authorization-request.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTrustingOrganization, jobToken } from "../../harness/clients/workload.ts";
import { attributesOf, type Span, startCollector, tracedBy } from "../../harness/collector.ts";
import { providerSettings, startMockProvider } from "../../harness/providers/identity-provider.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const CLIENT = 3; // the kind of a span
const FAILED = 2; // its status

const collector = await startCollector();
// The exporters of OpenTelemetry read the environment themselves.
Object.assign(process.env, tracedBy(collector));
const provider = await startMockProvider();
const publisher = await startPublisher(["docs.example"]);
const service = await startTestService({ ...tracedBy(collector), ...providerSettings(provider.issuer) });
const reader = await startTestService(
  { ...tracedBy(collector), ...publisher.settings, CIMD: "any" },
  publisher.connections,
);

function redeem(fields: { client_id: string; assertion: string }, headers: object) {
  const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
  return postForm(`${service.url}/oauth/token`, { ...fields, grant_type }, headers);
}

let count = 0;

function newTrace() {
  const traceId = (++count).toString(16).padStart(32, "0");
  return {
    traceId,
    headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: "vendor=state" },
  };
}

/** Waits for the span of a request to us and for `number` requests to others, in their order, and checks their relation. */
async function callsOf(t: ExecutionContext, traceId: string, name: string, number: number): Promise<Span[]> {
  const isOfTrace = (span: Span) => span.traceId === traceId;
  const request = await collector.waitForSpan((span) => isOfTrace(span) && span.name === name);
  const calls = collector.spans().filter((span) => isOfTrace(span) && isCall(span));
  t.is(calls.length, number);
  for (const { parentSpanId } of calls) t.is(parentSpanId, request.spanId);
  return calls;
}

/** Returns whether a span is a request to another server, and not a statement. */
function isCall({ kind, attributes }: Span): boolean {
  return kind === CLIENT && attributes.some(({ key }) => key === "http.request.method");
}

const headerOf = ({ traceId, spanId }: Span) => `00-${traceId}-${spanId}-01`;

const SUCCEEDED = { "http.response.status_code": 200 };

function isCallTo(t: ExecutionContext, span: Span | undefined, url: string, expected: object = SUCCEEDED) {
  const { hostname, port } = new URL(url);
  t.deepEqual(span && attributesOf(span), {
    "http.request.method": span?.name,
    "server.address": hostname,
    "server.port": Number(port || 443),
    ...expected,
  });
}

const secrets = ["secret-state", "a secret of the identity provider", ".well-known", "jwks", ".json"];

test.serial("requests to the identity provider are spans of the sign-in with its traceparent", async (t) => {
  const browser = new TestBrowser(service.url);
  const begin = newTrace();
  const away = await browser.open(`${service.url}/auth/sso`, { headers: begin.headers });
  const [discovery] = await callsOf(t, begin.traceId, "GET /auth/sso", 1);
  isCallTo(t, discovery, provider.issuer);

  const callback = await provider.answer(away);
  for (const name of ["code", "state"]) secrets.push(new URL(callback).searchParams.get(name) as string);
  let received: IncomingHttpHeaders = {};
  provider.service.once("beforeResponse", (_response, request) => {
    received = request.headers;
  });
  const end = newTrace();
  const page = await browser.open(callback, { headers: end.headers });
  t.is(page.status, 200);
  const [token, keys] = await callsOf(t, end.traceId, "GET /auth/sso/callback", 2);
  isCallTo(t, token, provider.issuer);
  isCallTo(t, keys, provider.issuer);
  t.deepEqual([token?.name, keys?.name], ["POST", "GET"]);
  t.is(received.traceparent, token && headerOf(token));
  t.is(received.tracestate, undefined);
});

test.serial(
  "an issuer gets the traceparent, and the span of a request that fails has its status, or the code of its error",
  async (t) => {
    for (const isStopped of [false, true]) {
      const issuer = await startTokenIssuer();
      const { clientId } = await createTrustingOrganization(service, issuer);
      const assertion = await jobToken(service, issuer);
      secrets.push(assertion);
      let received: IncomingHttpHeaders = {};
      issuer.respond("/.well-known/openid-configuration", (request, response) => {
        received = request.headers;
        response.writeHead(503).end();
      });
      if (isStopped) await issuer.stop();
      const { traceId, headers } = newTrace();
      await redeem({ client_id: clientId, assertion }, headers);
      const [metadata] = await callsOf(t, traceId, "POST /oauth/token", 1);
      const refused = { "http.response.status_code": 503, "error.type": "503" };
      isCallTo(t, metadata, issuer.issuer, isStopped ? { "error.type": "ECONNREFUSED" } : refused);
      t.is(metadata?.status.code, FAILED);
      if (isStopped) continue;
      t.deepEqual([received.traceparent, received.tracestate], [metadata && headerOf(metadata), undefined]);
      await issuer.stop();
    }
  },
);

test.serial("the host of a document that a request names doesn't get the trace", async (t) => {
  const client_id = "https://docs.example/client.json?secret-query";
  const redirect_uri = "https://docs.example/callback";
  publisher.publish(client_id, { body: { client_id, client_name: "An app", redirect_uris: [redirect_uri] } });
  const { traceId, headers } = newTrace();
  const url = authorizeUrl(reader, { clientId: client_id }, { redirect_uri });
  const { status } = await fetch(url, { redirect: "manual", headers });
  t.is(status, 303);
  const [document] = await callsOf(t, traceId, "GET /oauth/authorize", 1);
  isCallTo(t, document, client_id);
  t.is(publisher.headers.length, 1);
  t.deepEqual([publisher.headers[0]?.traceparent, publisher.headers[0]?.tracestate], [undefined, undefined]);
});

test.serial("spans contain neither the paths nor the secrets of these requests", async (t) => {
  const spans = JSON.stringify(collector.spans());
  t.true(spans.includes("docs.example"), "the test can tell");
  for (const secret of [...secrets, "secret-query"]) t.false(spans.includes(secret), secret);
});
