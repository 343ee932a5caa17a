import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { advanceClock, HOUR_MS } from "../../harness/clock.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import type { DeliveryBody, WebhookBody } from "../../harness/webhooks.ts";
import { deliveriesOf, until, verify, waitForDelivery } from "../../harness/webhooks.ts";

const { service, receiver, respondWith, subscribe, passQueue } = await startWebhookService();

/** Creates an organization with a webhook. Its functions use a new token, because the clock advances. */
async function setUp() {
  const { organization, webhook, path, address } = await subscribe(["webhook.test"]);
  const apiNow = async () => apiAt(service.url, await service.token(organization));
  const send = async () => (await (await apiNow()).send<DeliveryBody>("POST", `${address}/test`)).body.id;
  const find = (id: string, matches: (delivery: DeliveryBody) => boolean) =>
    until(async () =>
      (await deliveriesOf(await apiNow(), webhook)).find((one) => one.id === id && matches(one)),
    );
  const isEnabled = async () => (await (await apiNow()).get<WebhookBody>(address)).body.enabled;
  return { organization, apiNow, webhook, path, address, send, find, isEnabled };
}

const pacemaker = await setUp();

/** Waits for each attempt, and advances the clock to the next. */
async function throughSchedule(
  { find }: Awaited<ReturnType<typeof setUp>>,
  id: string,
  onAttempt: (number: number) => void | Promise<void> = () => {},
): Promise<DeliveryBody> {
  for (let number = 1; ; number++) {
    const delivery = await find(id, ({ attempts }) => attempts.length === number);
    await onAttempt(number);
    if (delivery.next_attempt_at === null) return delivery;
    advanceClock(Date.parse(delivery.next_attempt_at) - Date.now() + 1);
    // A new delivery is sent immediately, together with every delivery that is due.
    await pacemaker.send();
  }
}

test.serial("each attempt has the same ID and body and a new timestamp; the last one disables", async (t) => {
  const parts = await setUp();
  const { organization, webhook, path } = parts;
  respondWith(path, 500);
  const id = await parts.send();
  const start = Date.now();
  const last = await throughSchedule(parts, id, () => {
    // The library rejects timestamps that are off by more than five minutes.
    t.is(verify(receiver.received(path).at(-1) as never, webhook.secret).type, "webhook.test");
  });
  const requests = receiver.received(path);
  t.is(requests.length, 10);
  t.deepEqual(new Set(requests.map(({ headers }) => headers["webhook-id"])), new Set([id]));
  t.is(new Set(requests.map(({ headers }) => headers["webhook-timestamp"])).size, 10);
  t.is(new Set(requests.map(({ text }) => text)).size, 1);
  t.true(Date.now() - start > 67 * HOUR_MS, "75 hours without jitter");
  t.is(last.status, "failed");
  const statuses = last.attempts.map(({ status }) => status);
  t.deepEqual(statuses, Array(10).fill(500));

  t.false(await parts.isEnabled());
  const owner = await createColleague(service, organization.id);
  const { body } = await owner.api.get<{ data: { actor: string; summary: string }[] }>(
    `/dashboard/organizations/${organization.id}/audit?type=webhook.disabled`,
  );
  const [entry, ...others] = body.data;
  t.deepEqual([entry?.actor, others], ["system", []]);
  t.regex(entry?.summary ?? "", /disabled webhook http\S+\/…: All deliveries have failed/);
});

test.serial("nothing is sent before it is due, and an endpoint that is fixed in time gets it", async (t) => {
  const { path, send, find, isEnabled } = await setUp();
  respondWith(path, 503);
  const id = await send();
  const first = await find(id, ({ attempts }) => attempts.length === 1);
  respondWith(path, 204);
  await passQueue();
  t.is(receiver.received(path).length, 1);
  advanceClock(Date.parse(first.next_attempt_at ?? "") - Date.now() + 1);
  const last = await find(id, ({ status }) => status === "succeeded");
  t.is(last.attempts.length, 2);
  t.true(await isEnabled());
});

test.serial("an endpoint that sends Retry-After gets nothing until then, and all others do", async (t) => {
  const { path, send, find } = await setUp();
  respondWith(path, 429, { "retry-after": "3600" });
  const first = await send();
  const { next_attempt_at } = await find(first, ({ attempts }) => attempts.length === 1);
  const due = Date.parse(next_attempt_at ?? "");
  const second = await send();
  const isPaused = (delivery: DeliveryBody) =>
    Date.parse(delivery.next_attempt_at ?? "") > Date.now() + 60_000;
  const waiting = await find(second, isPaused);
  t.like(waiting, { status: "pending", attempts: [] });
  t.true(Math.abs(Date.parse(waiting.next_attempt_at ?? "") - due) < 2_000);
  const other = await setUp();
  await other.find(await other.send(), ({ status }) => status === "succeeded");
  t.is(receiver.received(path).length, 1);

  respondWith(path, 204);
  advanceClock(HOUR_MS + 1);
  for (const id of [first, second]) await find(id, ({ status }) => status === "succeeded");
  t.is(receiver.received(path).length, 3);
});

test.serial("updating a webhook ends the pause that its endpoint asked for", async (t) => {
  const { apiNow, path, address, send, find } = await setUp();
  respondWith(path, 503, { "retry-after": "3600" });
  await find(await send(), ({ attempts }) => attempts.length === 1);
  const json = { url: receiver.url("/moved-to") };
  t.is((await (await apiNow()).send("PATCH", address, { json })).status, 200);
  await send();
  await receiver.waitFor("/moved-to", 1);
  t.is(receiver.received(path).length, 1);
});

test("the metrics count attempts that succeeded, are retried, failed or were not sent", async (t) => {
  // Its own service, because the metrics count the attempts of all organizations.
  const own = await startWebhookService();
  const counts = async (): Promise<Record<string, number>> => {
    const { text } = await apiAt(own.service.url).get("/metrics");
    const lines = text.matchAll(/^linkgate_webhook_attempts_total\{outcome="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]));
  };
  t.deepEqual(await counts(), { succeeded: 0, retried: 0, failed: 0, unsent: 0 });
  for (const status of [204, 500, 410]) {
    const { api, webhook, path, address } = await own.subscribe(["webhook.test"]);
    own.respondWith(path, status);
    await api.send("POST", `${address}/test`);
    await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
    if (status !== 500) continue;
    await api.send("PATCH", address, { json: { enabled: false } });
    advanceClock(10_000);
    await waitForDelivery(api, webhook, ({ status }) => status === "failed");
  }
  await until(async () => Object.values(await counts()).every((count) => count > 0) || undefined);
  t.deepEqual(await counts(), { succeeded: 4, retried: 1, failed: 1, unsent: 1 }, "each was verified first");
});
