import test from "ava";
import { type ClientOptions, createClient, LinkgateError } from "../../../client/src/index.ts";
import {
  cutResponse,
  loseResponse,
  passOn,
  respondWith,
  startHttpProxy,
} from "../../harness/clients/http-proxy.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();

async function connect(options: Partial<ClientOptions> = {}) {
  const [proxy, { clientId, clientSecret }] = await Promise.all([
    startHttpProxy(service.url),
    service.createOrganization(),
  ]);
  const linkgate = createClient({ baseUrl: proxy.url, clientId, clientSecret, ...options });
  const sent = (method: string) => proxy.requests.filter((request) => request.method === method);
  return { linkgate, proxy, sent, creations: () => sent("POST").filter(({ path }) => path === "/v1/links") };
}

const URL_OF_LINK = { url: "https://example.com/" };
const LOSSES = { "is lost": loseResponse, "is cut off": cutResponse };

for (const [what, lose] of Object.entries(LOSSES))
  test(`a link is created once if the response ${what}`, async (t) => {
    const { linkgate, proxy, creations } = await connect();
    proxy.once("/v1/links", lose);
    let replayed: string | null | undefined;
    const link = await linkgate.createLink(URL_OF_LINK, {
      onResponse: ({ headers }) => (replayed = headers.get("Idempotency-Replayed")),
    });
    t.is(replayed, "true");
    t.deepEqual((await linkgate.listLinks()).data, [link]);
    t.is(creations().length, 2);
  });

test("a secret whose response is lost is not returned again, and the webhook is created once", async (t) => {
  const { linkgate, proxy } = await connect();
  proxy.once("/v1/webhooks", loseResponse);
  const lost = linkgate.createWebhook({ url: "https://example.com/", events: ["link.created"] });
  const error = await t.throwsAsync(lost, { instanceOf: LinkgateError });
  t.is(error.code, "secret_shown_once");
  t.is((await linkgate.listWebhooks()).data.length, 1);
});

test("each call has its own idempotency key, or that of the caller", async (t) => {
  const { linkgate, creations } = await connect();
  await linkgate.createLink(URL_OF_LINK);
  await linkgate.createLink(URL_OF_LINK);
  const link = await linkgate.createLink(URL_OF_LINK, { idempotencyKey: "order-1042" });
  t.is((await linkgate.createLink(URL_OF_LINK, { idempotencyKey: "order-1042" })).id, link.id);
  t.is(new Set(creations().map(({ headers }) => headers["idempotency-key"])).size, 3);
  t.is(creations().at(-1)?.headers["idempotency-key"], "order-1042");
});

test("a 429, 502, 503 and 504 are retried, and a 409 of a key that is still in use", async (t) => {
  const { linkgate, proxy, sent, creations } = await connect();
  for (const status of [429, 502, 503, 504]) {
    proxy.once("/v1/organization", respondWith(status));
    t.is((await linkgate.getOrganization()).plan, "growth");
  }
  const reads = sent("GET").map(({ status }) => status);
  t.deepEqual(reads, [429, 200, 502, 200, 503, 200, 504, 200]);
  proxy.once("/v1/links", respondWith(409, { "Retry-After": "1" }, { code: "idempotency_key_in_use" }));
  await linkgate.createLink(URL_OF_LINK);
  const statuses = creations().map(({ status }) => status);
  t.deepEqual(statuses, [409, 201]);
});

test("other errors are not retried", async (t) => {
  const { linkgate, proxy, creations } = await connect();
  for (const [status, code] of [
    [400, "invalid_json"],
    [409, "slug_taken"],
    [500, "internal_error"],
  ] as const) {
    proxy.once("/v1/links", respondWith(status, {}, { code }));
    const error = await t.throwsAsync(linkgate.createLink(URL_OF_LINK), { instanceOf: LinkgateError });
    t.is(error.code, code);
  }
  t.is(creations().length, 3);
});

const WAITS: Record<string, (seconds: number) => string> = {
  seconds: String,
  // HTTP dates have no milliseconds.
  "an HTTP date": (seconds) => new Date(Date.now() + (seconds + 1) * 1000).toUTCString(),
};

for (const [form, write] of Object.entries(WAITS))
  test(`the client waits as long as Retry-After asks for, in ${form}`, async (t) => {
    const { linkgate, proxy } = await connect({ maxRetries: 1 });
    let isEarly = true;
    proxy.once("/v1/organization", (...args) => {
      setTimeout(() => (isEarly = false), 1900);
      return respondWith(429, { "Retry-After": write(2) })(...args);
    });
    proxy.once("/v1/organization", (...args) => (isEarly ? respondWith(429) : passOn)(...args));
    await t.notThrowsAsync(linkgate.getOrganization());
  });

test("a server that asks for more than a minute gets no other request", async (t) => {
  const { linkgate, proxy, sent } = await connect();
  proxy.once("/v1/organization", respondWith(503, { "Retry-After": "3600" }));
  await t.throwsAsync(linkgate.getOrganization(), { instanceOf: LinkgateError });
  t.is(sent("GET").length, 1);
});

test("retries are bounded", async (t) => {
  const { linkgate, proxy, sent } = await connect({ maxRetries: 2 });
  for (let times = 0; times < 4; times++) proxy.once("/v1/organization", respondWith(502));
  const error = await t.throwsAsync(linkgate.getOrganization(), { instanceOf: LinkgateError });
  t.like(error, { status: 502, code: "unexpected_response", detail: "The server responded with 502." });
  t.is(sent("GET").length, 3);
});

test("without a response, the error is that of fetch", async (t) => {
  const { linkgate, proxy } = await connect({ maxRetries: 0 });
  proxy.once("/v1/organization", loseResponse);
  await t.throwsAsync(linkgate.getOrganization(), { instanceOf: TypeError });
});

test("an aborted call rejects with the reason of its signal, and sends no other request", async (t) => {
  const { linkgate, proxy, sent } = await connect();
  const controller = new AbortController();
  const reason = new Error("the user left");
  // The client has to wait for longer than the test.
  proxy.once("/v1/organization", (response) => {
    response.once("close", () => controller.abort(reason));
    return respondWith(503, { "Retry-After": "60" })(response, () => Promise.reject());
  });
  t.is(await t.throwsAsync(linkgate.getOrganization({}, { signal: controller.signal })), reason);
  t.is(await t.throwsAsync(linkgate.getOrganization({}, { signal: controller.signal })), reason);
  t.is(sent("GET").length, 1);
});

test("an aborted call leaves the token to the others that wait for it", async (t) => {
  const { linkgate, proxy } = await connect();
  const controller = new AbortController();
  const { promise: isAborted, resolve } = Promise.withResolvers<void>();
  proxy.once("/oauth/token", async (response, forward) => {
    const answer = await forward();
    controller.abort(new Error("the user left"));
    await isAborted;
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  const aborted = linkgate.getOrganization({}, { signal: controller.signal });
  const other = linkgate.getOrganization();
  await t.throwsAsync(aborted, { message: "the user left" });
  resolve();
  t.is((await other).plan, "growth");
});
