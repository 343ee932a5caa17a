import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, type DeliveryBody, deliveriesOf, until } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const SECOND_MS = 1000;
const DAY_S = 24 * 60 * 60;

async function setUp(path: string) {
  const organization = await service.createOrganization();
  const apiNow = async () => apiAt(service.url, await service.token(organization));
  const api = await apiNow();
  const webhook = await createWebhook(api, receiver.url(path), ["webhook.test"]);
  const send = async () =>
    (await (await apiNow()).send<DeliveryBody>("POST", `/v1/webhooks/${webhook.id}/test`)).body;
  const find = (id: string, matches: (delivery: DeliveryBody) => boolean) =>
    until(async () =>
      (await deliveriesOf(await apiNow(), webhook)).find(
        (delivery) => delivery.id === id && matches(delivery),
      ),
    );
  return { api, apiNow, webhook, send, find };
}

/** Returns how many seconds after the response the next attempt is due. */
function delayOf({ attempts, next_attempt_at }: DeliveryBody): number {
  const last = attempts.at(-1);
  return (Date.parse(next_attempt_at ?? "") - Date.parse(last?.at ?? "") - (last?.ms ?? 0)) / SECOND_MS;
}

/** Returns the header value: `in 60 s` becomes an HTTP date, anything else stays as it is. */
function headerOf(value: string): string {
  const [, seconds] = /^in (-?\d+) s$/.exec(value) ?? [];
  return seconds === undefined ? value : new Date(Date.now() + Number(seconds) * SECOND_MS).toUTCString();
}

// The usual delay, which applies unless the header asks for a longer one: 5 s with jitter.
const USUAL = 5;
const CASES: [status: number, value: string, seconds: number][] = [
  [429, "120", 120],
  [502, "120", 120],
  [503, "600", 600],
  [504, "60", 60],
  [429, "in 300 s", 300],
  [429, `${7 * DAY_S}`, DAY_S],
  [429, "9".repeat(30), DAY_S],
  [429, `in ${30 * DAY_S} s`, DAY_S],
  [429, "1", USUAL],
  [429, "0", USUAL],
  [429, "-60", USUAL],
  [429, "in -60 s", USUAL],
  [429, "soon", USUAL],
  [429, "", USUAL],
  [500, "120", USUAL],
  [301, "120", USUAL],
];
for (const [index, [status, value, seconds]] of CASES.entries()) {
  test(`after ${status} with Retry-After “${value}” the next attempt is due in ${seconds} s`, async (t) => {
    const path = `/answer-${index}`;
    let header = "";
    receiver.respond(path, (response) => {
      header = headerOf(value);
      response.writeHead(status, { "retry-after": header }).end();
    });
    const { send, find } = await setUp(path);
    const { id } = await send();
    const delivery = await find(id, ({ attempts }) => attempts.length === 1);
    if (header !== value && seconds > USUAL && seconds < DAY_S)
      t.is(Date.parse(delivery.next_attempt_at ?? ""), Date.parse(header));
    else t.true(Math.abs(delayOf(delivery) - seconds) < 1.5, `${delayOf(delivery)}`);
  });
}

test.serial(
  "an endpoint that sends Retry-After receives nothing until then, and everything afterwards",
  async (t) => {
    const { send, find } = await setUp("/paused");
    receiver.respond("/paused", (response) => response.writeHead(429, { "retry-after": "3600" }).end());
    const { id: first } = await send();
    const { next_attempt_at } = await find(first, ({ attempts }) => attempts.length === 1);
    const until = Date.parse(next_attempt_at ?? "");
    const { id: second } = await send();
    const waiting = await find(
      second,
      (delivery) => Date.parse(delivery.next_attempt_at ?? "") > Date.now() + 60_000,
    );
    t.like(waiting, { status: "pending", attempts: [] });
    t.true(Math.abs(Date.parse(waiting.next_attempt_at ?? "") - until) < 2_000);
    t.is(receiver.received("/paused").length, 1);

    receiver.respond("/paused", (response) => response.writeHead(204).end());
    advanceClock(3600 * SECOND_MS + 1);
    for (const id of [first, second]) await find(id, ({ status }) => status === "succeeded");
    t.is(receiver.received("/paused").length, 3);
    t.is((await find(second, () => true)).attempts.length, 1);
  },
);

test.serial("updating a webhook ends the pause that its endpoint asked for", async (t) => {
  const { apiNow, webhook, send, find } = await setUp("/moved");
  receiver.respond("/moved", (response) => response.writeHead(503, { "retry-after": "3600" }).end());
  const { id } = await send();
  await find(id, ({ attempts }) => attempts.length === 1);
  const json = { url: receiver.url("/moved-to") };
  t.is((await (await apiNow()).send("PATCH", `/v1/webhooks/${webhook.id}`, { json })).status, 200);
  await send();
  await receiver.waitFor("/moved-to", 1);
  t.is(receiver.received("/moved").length, 1);
});

test.serial("a pause of one endpoint delays no other endpoint", async (t) => {
  const { send, find } = await setUp("/other");
  const busy = await setUp("/busy");
  receiver.respond("/busy", (response) => response.writeHead(429, { "retry-after": "3600" }).end());
  const { id } = await busy.send();
  await busy.find(id, ({ attempts }) => attempts.length === 1);
  t.is((await find((await send()).id, ({ status }) => status === "succeeded")).attempts.length, 1);
});
