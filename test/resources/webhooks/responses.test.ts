import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import test from "ava";
import { apiAt } from "../../harness/api.ts";
import { freePort } from "../../harness/port.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf, delivery } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService(
  { WEBHOOK_ALLOW_HOSTS: "127.0.0.1" },
  { patience: { connectMs: 8_000, totalMs: 10_000 } },
);
const newcomer = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const silent = createServer().listen(0, "127.0.0.1");
await once(silent, "listening");
test.after.always(() => Promise.all([service.close(), receiver.close(), silent.close()]));

/** What the log says of the first attempt to deliver to an address. */
async function firstAttempt(url: string) {
  const api = await newcomer();
  const webhook = await createWebhook(api, url, ["webhook.test"]);
  await api.send("POST", `/v1/webhooks/${webhook.id}/test`);
  const { attempts, ...told } = await delivery(api, webhook, ({ attempts }) => attempts.length > 0);
  return { api, webhook, told, attempt: attempts[0] };
}

for (const status of [200, 201, 202, 204, 206, 299]) {
  test(`an answer of ${status} is a success, and the last attempt`, async (t) => {
    const path = `/success-${status}`;
    receiver.answer(path, (response) => response.writeHead(status).end());
    const { told, attempt } = await firstAttempt(receiver.url(path));
    t.like(told, { status: "succeeded", next_attempt_at: null });
    t.like(attempt, { status });
    t.false("error" in (attempt ?? {}));
  });
}

for (const status of [300, 304, 400, 401, 403, 404, 405, 409, 429, 500, 502, 503, 504, 599]) {
  test(`an answer of ${status} is a failure, and the next attempt follows in 5 s`, async (t) => {
    const path = `/failure-${status}`;
    receiver.answer(path, (response) => response.writeHead(status).end());
    const { told, attempt } = await firstAttempt(receiver.url(path));
    t.is(told.status, "pending");
    t.like(attempt, { status });
    const pause = Date.parse(told.next_attempt_at ?? "") - Date.parse(attempt?.at ?? "") - (attempt?.ms ?? 0);
    t.true(pause >= 4_400 && pause <= 5_600, `${pause}`);
  });
}

for (const status of [301, 302, 303, 307, 308]) {
  test(`sec 131: a redirect with ${status} is not followed, and a failure`, async (t) => {
    const [from, to] = [`/from-${status}`, `/to-${status}`];
    receiver.answer(from, (response) => response.writeHead(status, { location: receiver.url(to) }).end());
    const { told, attempt } = await firstAttempt(receiver.url(from));
    t.is(told.status, "pending");
    t.like(attempt, { status });
    t.is(receiver.received(from).length, 1);
    t.is(receiver.received(to).length, 0);
  });
}

const NO_ANSWER = "No answer within the time allowed.";
const CLOSED = "The connection was closed without an answer.";
const silences: [name: string, answer: (response: ServerResponse) => void, error: string][] = [
  ["hangs", () => {}, NO_ANSWER],
  ["closes early", (response) => response.socket?.destroy(), CLOSED],
  ["resets the connection", (response) => (response.socket as Socket).resetAndDestroy(), CLOSED],
  ["says to go on, and nothing more", (response) => response.writeProcessing(), NO_ANSWER],
  ["closes within the headers", (response) => response.socket?.end("HTTP/1.1 200 OK\r\nX: "), CLOSED],
  ["speaks another protocol", (response) => response.socket?.end("+PONG\r\n"), "The answer is not HTTP."],
  [
    "sends endless headers",
    (response) => response.socket?.write(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(100_000)}`),
    "The answer is not HTTP.",
  ],
];
for (const [name, answer, error] of silences) {
  test(`a receiver that ${name} has failed: ${error}`, async (t) => {
    const path = `/${name.replaceAll(/\W/g, "-")}`;
    receiver.answer(path, answer);
    const { told, attempt } = await firstAttempt(receiver.url(path));
    t.is(told.status, "pending");
    t.deepEqual(Object.keys(attempt ?? {}).sort(), ["at", "error", "ms"]);
    t.is(attempt?.error, error);
  });
}

test("a receiver that answers slowly, but in time, has taken the event", async (t) => {
  receiver.answer("/slow", (response) => setTimeout(() => response.writeHead(200).end("thanks"), 400));
  const { told, attempt } = await firstAttempt(receiver.url("/slow"));
  t.is(told.status, "succeeded");
  t.true((attempt?.ms ?? 0) >= 390);
});

test("a receiver that never ends its answer has taken the event, and the connection is closed", async (t) => {
  const closed = Promise.withResolvers<void>();
  receiver.answer("/drip", (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write("."), 50);
    response.on("close", () => {
      clearInterval(timer);
      closed.resolve();
    });
  });
  const { told, attempt } = await firstAttempt(receiver.url("/drip"));
  t.is(told.status, "succeeded");
  t.like(attempt, { status: 200 });
  await closed.promise;
});

test("sec 131: of an answer of megabytes next to nothing is read, and nothing is shown", async (t) => {
  const MEGABYTE = 1024 * 1024;
  const taken = Promise.withResolvers<number>();
  receiver.answer("/megabytes", (response) => {
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
  const { api, webhook, told, attempt } = await firstAttempt(receiver.url("/megabytes"));
  t.is(told.status, "pending");
  t.deepEqual(Object.keys(attempt ?? {}).sort(), ["at", "ms", "status"]);
  t.true((await taken.promise) < 32, "what the system buffers on the way");
  const { text } = await api.get(`/v1/webhooks/${webhook.id}/deliveries`);
  t.false(text.includes("secret"));
});

const unreachable: [name: string, url: () => Promise<string>, error: RegExp][] = [
  ["nobody listens", async () => `http://127.0.0.1:${await freePort()}/`, /^The connection was refused\.$/],
  [
    "plain HTTP is behind https",
    async () => receiver.url("/plain").replace("http:", "https:"),
    /^TLS failed/,
  ],
  [
    "a connection is taken, and no TLS spoken",
    async () => `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`,
    /^No connection within the time allowed\.$/,
  ],
];
for (const [name, url, error] of unreachable) {
  test(`where ${name} the log says why`, async (t) => {
    const { told, attempt } = await firstAttempt(await url());
    t.is(told.status, "pending");
    t.regex(attempt?.error ?? "", error);
    t.false(/\d+\.\d+\.\d+|ECONN/.test(attempt?.error ?? ""), "nothing of the network");
  });
}

test("a receiver that answers 410 is disabled, and told nothing more", async (t) => {
  receiver.answer("/gone", (response) => response.writeHead(410).end());
  const { api, webhook, told, attempt } = await firstAttempt(receiver.url("/gone"));
  t.like(told, { status: "failed", next_attempt_at: null });
  t.like(attempt, { status: 410 });
  t.like((await api.get(`/v1/webhooks/${webhook.id}`)).body, { enabled: false });
  t.like(await api.send("POST", `/v1/webhooks/${webhook.id}/test`), { status: 409 });
  t.is((await deliveriesOf(api, webhook)).length, 1);
  t.is(receiver.received("/gone").length, 1);

  receiver.answer("/gone", (response) => response.writeHead(204).end());
  const enabled = await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: true } });
  t.is(enabled.status, 200);
  await api.send("POST", `/v1/webhooks/${webhook.id}/deliveries/${told.id}/resend`);
  const again = await delivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(again.id, told.id);
  t.deepEqual(
    again.attempts.map(({ status }) => status),
    [410, 204],
  );
});
