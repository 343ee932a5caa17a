import test from "ava";
import { apiAt } from "../../harness/api.ts";
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
  const find = (id: string, isHopedFor: (told: DeliveryBody) => boolean) =>
    until(async () =>
      (await deliveriesOf(await apiNow(), webhook)).find((told) => told.id === id && isHopedFor(told)),
    );
  return { api, apiNow, webhook, send, find };
}

/** How many seconds after the answer the next attempt is due. */
function pauseOf({ attempts, next_attempt_at }: DeliveryBody): number {
  const last = attempts.at(-1);
  return (Date.parse(next_attempt_at ?? "") - Date.parse(last?.at ?? "") - (last?.ms ?? 0)) / SECOND_MS;
}

/** What a receiver says: `in 60 s` as a date, all else as it is. */
function headerOf(said: string): string {
  const [, seconds] = /^in (-?\d+) s$/.exec(said) ?? [];
  return seconds === undefined ? said : new Date(Date.now() + Number(seconds) * SECOND_MS).toUTCString();
}

// What counts where nothing longer is asked for: 5 s and the jitter.
const USUAL = 5;
const answers: [status: number, said: string, seconds: number][] = [
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
for (const [index, [status, said, seconds]] of answers.entries()) {
  test(`after ${status} with Retry-After “${said}” the next attempt is due in ${seconds} s`, async (t) => {
    const path = `/answer-${index}`;
    receiver.answer(path, (response) => response.writeHead(status, { "retry-after": headerOf(said) }).end());
    const { send, find } = await setUp(path);
    const { id } = await send();
    const pause = pauseOf(await find(id, ({ attempts }) => attempts.length === 1));
    // A date has no fractions of a second.
    t.true(Math.abs(pause - seconds) < 1.5, `${pause}`);
  });
}

test.serial(
  "a receiver that asks for patience is sent nothing at all meanwhile, then everything",
  async (t) => {
    const { send, find } = await setUp("/patience");
    receiver.answer("/patience", (response) => response.writeHead(429, { "retry-after": "3600" }).end());
    const { id: first } = await send();
    const { next_attempt_at } = await find(first, ({ attempts }) => attempts.length === 1);
    const until = Date.parse(next_attempt_at ?? "");
    const { id: second } = await send();
    const waiting = await find(
      second,
      (told) => Date.parse(told.next_attempt_at ?? "") > Date.now() + 60_000,
    );
    t.like(waiting, { status: "pending", attempts: [] });
    t.true(Math.abs(Date.parse(waiting.next_attempt_at ?? "") - until) < 2_000);
    t.is(receiver.received("/patience").length, 1);

    receiver.answer("/patience", (response) => response.writeHead(204).end());
    advanceClock(3600 * SECOND_MS + 1);
    for (const id of [first, second]) await find(id, ({ status }) => status === "succeeded");
    t.is(receiver.received("/patience").length, 3);
    t.is((await find(second, () => true)).attempts.length, 1);
  },
);

test.serial("whoever changes a webhook ends the patience that its receiver asked for", async (t) => {
  const { apiNow, webhook, send, find } = await setUp("/moved");
  receiver.answer("/moved", (response) => response.writeHead(503, { "retry-after": "3600" }).end());
  const { id } = await send();
  await find(id, ({ attempts }) => attempts.length === 1);
  const json = { url: receiver.url("/moved-to") };
  t.is((await (await apiNow()).send("PATCH", `/v1/webhooks/${webhook.id}`, { json })).status, 200);
  await send();
  await receiver.waitFor("/moved-to", 1);
  t.is(receiver.received("/moved").length, 1);
});

test.serial("patience that one receiver asks for holds no other one up", async (t) => {
  const { send, find } = await setUp("/impatient");
  const busy = await setUp("/busy");
  receiver.answer("/busy", (response) => response.writeHead(429, { "retry-after": "3600" }).end());
  const { id } = await busy.send();
  await busy.find(id, ({ attempts }) => attempts.length === 1);
  t.is((await find((await send()).id, ({ status }) => status === "succeeded")).attempts.length, 1);
});
