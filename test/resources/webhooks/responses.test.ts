import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { freePort } from "../../harness/port.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf, waitForDelivery } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService(
  { WEBHOOK_ALLOW_HOSTS: "127.0.0.1" },
  { timeouts: { connectMs: 8_000, totalMs: 10_000 } },
);
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const silent = createServer().listen(0, "127.0.0.1");
await once(silent, "listening");
test.after.always(() => Promise.all([service.close(), receiver.close(), silent.close()]));

/** Returns the first attempt to deliver to a URL. */
async function firstAttempt(url: string) {
  const api = await createApi();
  const webhook = await createWebhook(api, url, ["webhook.test"]);
  await api.send("POST", `/v1/webhooks/${webhook.id}/test`);
  const { attempts, ...delivery } = await waitForDelivery(
    api,
    webhook,
    ({ attempts }) => attempts.length > 0,
  );
  return { api, webhook, delivery, attempt: attempts[0] };
}

for (const status of [200, 201, 202, 204, 206, 299]) {
  test(`a response of ${status} is a success and ends the attempts`, async (t) => {
    const path = `/success-${status}`;
    receiver.respond(path, (response) => response.writeHead(status).end());
    const { delivery, attempt } = await firstAttempt(receiver.url(path));
    t.like(delivery, { status: "succeeded", next_attempt_at: null });
    t.like(attempt, { status });
    t.false("error" in (attempt ?? {}));
  });
}

for (const status of [300, 304, 400, 401, 403, 404, 405, 409, 429, 500, 502, 503, 504, 599]) {
  test(`a response of ${status} is a failure, and the next attempt is due after 5 s`, async (t) => {
    const path = `/failure-${status}`;
    receiver.respond(path, (response) => response.writeHead(status).end());
    const { delivery, attempt } = await firstAttempt(receiver.url(path));
    t.is(delivery.status, "pending");
    t.like(attempt, { status });
    const pause =
      Date.parse(delivery.next_attempt_at ?? "") - Date.parse(attempt?.at ?? "") - (attempt?.ms ?? 0);
    t.true(pause >= 4_400 && pause <= 5_600, `${pause}`);
  });
}

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect with ${status} is a failure and is not followed`, async (t) => {
    const [from, to] = [`/from-${status}`, `/to-${status}`];
    receiver.respond(from, (response) => response.writeHead(status, { location: receiver.url(to) }).end());
    const { delivery, attempt } = await firstAttempt(receiver.url(from));
    t.is(delivery.status, "pending");
    t.like(attempt, { status });
    t.is(receiver.received(from).length, 1);
    t.is(receiver.received(to).length, 0);
  });
}

const TIMED_OUT = "The response timed out.";
const CLOSED = "The connection was closed without a response.";
const FAILURES: [name: string, respond: (response: ServerResponse) => void, error: string][] = [
  ["hangs", () => {}, TIMED_OUT],
  ["closes early", (response) => response.socket?.destroy(), CLOSED],
  ["resets the connection", (response) => (response.socket as Socket).resetAndDestroy(), CLOSED],
  ["sends only an interim response", (response) => response.writeProcessing(), TIMED_OUT],
  ["closes within the headers", (response) => response.socket?.end("HTTP/1.1 200 OK\r\nX: "), CLOSED],
  [
    "speaks another protocol",
    (response) => response.socket?.end("+PONG\r\n"),
    "The response is not valid HTTP.",
  ],
  [
    "sends endless headers",
    (response) => response.socket?.write(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(100_000)}`),
    "The response is not valid HTTP.",
  ],
];
for (const [name, respond, error] of FAILURES) {
  test(`an endpoint that ${name} fails with: ${error}`, async (t) => {
    const path = `/${name.replaceAll(/\W/g, "-")}`;
    receiver.respond(path, respond);
    const { delivery, attempt } = await firstAttempt(receiver.url(path));
    t.is(delivery.status, "pending");
    t.deepEqual(Object.keys(attempt ?? {}).sort(), ["at", "error", "ms"]);
    t.is(attempt?.error, error);
  });
}

test("a slow response within the time limit is a success", async (t) => {
  receiver.respond("/slow", (response) => setTimeout(() => response.writeHead(200).end("thanks"), 400));
  const { delivery, attempt } = await firstAttempt(receiver.url("/slow"));
  t.is(delivery.status, "succeeded");
  t.true((attempt?.ms ?? 0) >= 390);
});

test("an endless response is a success, and its connection is closed", async (t) => {
  const closed = Promise.withResolvers<void>();
  receiver.respond("/drip", (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write("."), 50);
    response.on("close", () => {
      clearInterval(timer);
      closed.resolve();
    });
  });
  const { delivery, attempt } = await firstAttempt(receiver.url("/drip"));
  t.is(delivery.status, "succeeded");
  t.like(attempt, { status: 200 });
  await closed.promise;
});

test("only a fraction of a response of megabytes is read, and no list shows it", async (t) => {
  const MEGABYTE = 1024 * 1024;
  const taken = Promise.withResolvers<number>();
  receiver.respond("/megabytes", (response) => {
    let left = 64;
    const more = () => {
      while (left-- > 0) if (!response.write("secret ".padEnd(MEGABYTE, "x"))) return;
      response.end();
    };
    response.on("drain", more);
    response.on("close", () => taken.resolve(64 - left));
    response.writeHead(500, { "x-internal": "secret" });
    more();
  });
  const { api, webhook, delivery, attempt } = await firstAttempt(receiver.url("/megabytes"));
  t.is(delivery.status, "pending");
  t.deepEqual(Object.keys(attempt ?? {}).sort(), ["at", "ms", "status"]);
  t.true((await taken.promise) < 32, "only what the system buffers");
  const { text } = await api.get(`/v1/webhooks/${webhook.id}/deliveries`);
  t.false(text.includes("secret"));
});

const UNREACHABLE: [name: string, url: () => Promise<string>, error: RegExp][] = [
  [
    "no server listens",
    async () => `http://127.0.0.1:${await freePort()}/`,
    /^The connection was refused\.$/,
  ],
  [
    "an https URL reaches plain HTTP",
    async () => receiver.url("/plain").replace("http:", "https:"),
    /^The TLS handshake failed/,
  ],
  [
    "the server accepts the connection but never starts TLS",
    async () => `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`,
    /^The connection timed out\.$/,
  ],
];
for (const [name, url, error] of UNREACHABLE) {
  test(`if ${name}, the attempt fails with the reason`, async (t) => {
    const { delivery, attempt } = await firstAttempt(await url());
    t.is(delivery.status, "pending");
    t.regex(attempt?.error ?? "", error);
    t.false(/\d+\.\d+\.\d+|ECONN/.test(attempt?.error ?? ""), "no details of the network");
  });
}

test("a response of 410 disables the webhook until it is enabled again", async (t) => {
  receiver.respond("/gone", (response) => response.writeHead(410).end());
  const { api, webhook, delivery, attempt } = await firstAttempt(receiver.url("/gone"));
  t.like(delivery, { status: "failed", next_attempt_at: null });
  t.like(attempt, { status: 410 });
  t.like((await api.get(`/v1/webhooks/${webhook.id}`)).body, { enabled: false });
  t.like(await api.send("POST", `/v1/webhooks/${webhook.id}/test`), { status: 409 });
  t.is((await deliveriesOf(api, webhook)).length, 1);
  t.is(receiver.received("/gone").length, 1);

  receiver.respond("/gone", (response) => response.writeHead(204).end());
  const enabled = await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: true } });
  t.is(enabled.status, 200);
  await api.send("POST", `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}/resend`);
  const again = await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(again.id, delivery.id);
  t.deepEqual(
    again.attempts.map(({ status }) => status),
    [410, 204],
  );
});
