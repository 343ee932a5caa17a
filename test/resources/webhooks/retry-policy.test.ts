import test from "ava";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { advanceClock } from "../../harness/clock.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService, type TestOrganization, type TestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  redacted,
  until,
  type WebhookBody,
  waitForDelivery,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });

test.after.always(() => Promise.all([service.close(), receiver.close()]));

const apiOf = async (organization: TestOrganization) => apiAt(service.url, await service.token(organization));

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The delays that Standard Webhooks 1.0.0 recommends. */
const DELAYS_MS = [5_000, 5 * MINUTE_MS, 30 * MINUTE_MS, ...[2, 5, 10, 14, 20, 24].map((h) => h * HOUR_MS)];

const idOf = ({ headers }: Received) => headers["webhook-id"] as string;
const sendTest = async (api: Api, { id }: WebhookBody) =>
  (await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`)).body;
const find = async (organization: TestOrganization, webhook: WebhookBody, id: string) =>
  (await deliveriesOf(await apiOf(organization), webhook)).find((delivery) => delivery.id === id);
const isEnabled = async (api: Api, { id }: WebhookBody) =>
  (await api.get<WebhookBody>(`/v1/webhooks/${id}`)).body.enabled;

/** Creates a webhook on its own path, and another one whose deliveries show that the queue has been polled. */
async function setUp(path: string) {
  const organization = await service.createOrganization();
  const api = await apiOf(organization);
  const webhook = await createWebhook(api, receiver.url(path), ["webhook.test"]);
  await createWebhook(api, receiver.url(`${path}/canary`), ["link.created"]);
  const waitForPoll = async () => {
    const before = receiver.received(`${path}/canary`).length;
    await (await apiOf(organization)).createLink();
    await receiver.waitFor(`${path}/canary`, before + 1);
  };
  return { organization, api, webhook, waitForPoll };
}

/** Waits for each attempt and advances the clock to the next; throws if one comes early. */
async function throughSchedule(
  { organization, webhook, waitForPoll }: Awaited<ReturnType<typeof setUp>>,
  id: string,
  onAttempt: (delivery: DeliveryBody, number: number) => void | Promise<void>,
): Promise<DeliveryBody> {
  const path = new URL(webhook.url).pathname;
  const received = () => receiver.received(path).filter((request) => idOf(request) === id).length;
  for (let number = 1; ; number++) {
    const delivery = await until(async () => {
      const found = await find(organization, webhook, id);
      return found?.attempts.length === number ? found : undefined;
    });
    await onAttempt(delivery, number);
    if (delivery.next_attempt_at === null) return delivery;
    const due = Date.parse(delivery.next_attempt_at);
    // No time passes while the queue is polled.
    const now = Date.now;
    Date.now = () => due - 1;
    await waitForPoll().finally(() => {
      Date.now = now;
    });
    if (received() !== number) throw new Error(`attempt ${number + 1} received early`);
    advanceClock(due - Date.now() + 1);
  }
}

test.serial(
  "a delivery is attempted ten times in three days, with the same ID and a new timestamp",
  async (t) => {
    const parts = await setUp("/fails");
    const { organization, api, webhook } = parts;
    receiver.respond("/fails", (response) => response.writeHead(500).end());
    const { id } = await sendTest(api, webhook);
    const last = await throughSchedule(parts, id, (delivery, number) => {
      const request = receiver.received("/fails").at(-1) as Received;
      t.is(idOf(request), id);
      // The library rejects timestamps that are off by more than five minutes.
      t.like(verify(request, webhook.secret), { type: "webhook.test" });
      const attempt = delivery.attempts.at(-1);
      const delay = DELAYS_MS[number - 1];
      if (delay === undefined || delivery.next_attempt_at === null) return;
      const actual =
        Date.parse(delivery.next_attempt_at) - Date.parse(attempt?.at ?? "") - (attempt?.ms ?? 0);
      t.true(actual > delay * 0.89 && actual < delay * 1.11 + 1_000, `${number}: ${actual}`);
    });
    const requests = receiver.received("/fails");
    t.is(requests.length, 10);
    t.is(new Set(requests.map(({ headers }) => headers["webhook-timestamp"])).size, 10);
    t.is(new Set(requests.map(({ text }) => text)).size, 1);
    t.is(last.status, "failed");
    t.deepEqual(
      last.attempts.map(({ status }) => status),
      Array(10).fill(500),
    );

    // Every attempt of the last three days failed.
    t.false(await isEnabled(await apiOf(organization), webhook));
    const owner = await createColleague(service, organization.id);
    type Log = { data: { type: string; actor: string; summary: string; data: object }[] };
    const { body } = await owner.api.get<Log>(
      `/dashboard/organizations/${organization.id}/audit?type=webhook.disabled`,
    );
    t.is(body.data.length, 1);
    t.like(body.data[0], { actor: "system", data: { url: redacted(webhook.url) } });
    t.regex(body.data[0]?.summary ?? "", /disabled webhook http.*\/…: All deliveries have failed/);
  },
);

test.serial("retry delays differ between deliveries", async (t) => {
  const { api, webhook } = await setUp("/jitter");
  receiver.respond("/jitter", (response) => response.writeHead(500).end());
  for (let round = 0; round < 5; round++) await sendTest(api, webhook);
  const delivery = await until(async () => {
    const all = await deliveriesOf(api, webhook);
    return all.every(({ attempts }) => attempts.length > 0) ? all : undefined;
  });
  const delays = delivery.map(
    ({ attempts: [first], next_attempt_at }) =>
      Date.parse(next_attempt_at ?? "") - Date.parse(first?.at ?? "") - (first?.ms ?? 0),
  );
  t.true(new Set(delays).size > 2, `${delays}`);
});

test.serial(
  "a delivery that fails permanently does not disable a webhook whose other deliveries succeed",
  async (t) => {
    const parts = await setUp("/partly");
    const { organization, api, webhook } = parts;
    const { id } = await createFailing();
    const last = await throughSchedule(parts, id, async (_told, number) => {
      if (number !== 9) return;
      const { id: other } = await sendTest(await apiOf(organization), webhook);
      await until(
        async () => (await find(organization, webhook, other))?.status === "succeeded" || undefined,
      );
    });
    t.is(last.status, "failed");
    t.true(await isEnabled(await apiOf(organization), webhook));

    async function createFailing() {
      const failing = Promise.withResolvers<string>();
      receiver.respond("/partly", async (response, { headers }) =>
        response.writeHead(headers["webhook-id"] === (await failing.promise) ? 500 : 204).end(),
      );
      const created = await sendTest(api, webhook);
      failing.resolve(created.id);
      return created;
    }
  },
);

test.serial("an endpoint that is fixed in time receives the delivery and is not disabled", async (t) => {
  const parts = await setUp("/fixed");
  const { organization, api, webhook } = parts;
  receiver.respond("/fixed", (response) => response.writeHead(503).end());
  const { id } = await sendTest(api, webhook);
  const last = await throughSchedule(parts, id, (_told, number) => {
    if (number === 9) receiver.respond("/fixed", (response) => response.writeHead(204).end());
  });
  t.is(last.status, "succeeded");
  t.is(last.attempts.length, 10);
  t.true(await isEnabled(await apiOf(organization), webhook));
});

/** Returns the number of attempts by outcome, from `/metrics`. */
async function countsOf({ url }: TestService): Promise<Record<string, number>> {
  const { text } = await apiAt(url).get("/metrics");
  const lines = text.matchAll(/^linkgate_webhook_attempts_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]));
}

test("the metrics count attempts that succeeded, are retried, failed or were not sent", async (t) => {
  // Its own service, because the metrics count the attempts of all organizations.
  const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
  t.teardown(() => service.close());
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  t.deepEqual(await countsOf(service), { succeeded: 0, retried: 0, failed: 0, unsent: 0 });
  for (const [path, status] of [
    ["/fine", 204],
    ["/weak", 500],
    ["/gone", 410],
  ] as const) {
    receiver.respond(path, (response) => response.writeHead(status).end());
    const webhook = await createWebhook(api, receiver.url(path), ["webhook.test"]);
    await api.send("POST", `/v1/webhooks/${webhook.id}/test`);
    await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
    if (status !== 500) continue;
    await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: false } });
    advanceClock(10_000);
    await waitForDelivery(api, webhook, ({ status }) => status === "failed");
  }
  // Each webhook was verified first.
  const expected = { succeeded: 4, retried: 1, failed: 1, unsent: 1 };
  await until(async () => Object.values(await countsOf(service)).every((count) => count > 0) || undefined);
  t.deepEqual(await countsOf(service), expected);
});
