import test from "ava";
import { type Api, apiAt } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createColleague } from "../../harness/dashboard.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService, type TestOrganization } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  until,
  type WebhookBody,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const apiOf = async (organization: TestOrganization) => apiAt(service.url, await service.token(organization));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The pauses of the contract, which is part of Standard Webhooks 1.0.0. */
const PAUSES_MS = [5_000, 5 * MINUTE_MS, 30 * MINUTE_MS, ...[2, 5, 10, 14, 20, 24].map((h) => h * HOUR_MS)];

const idOf = ({ headers }: Received) => headers["webhook-id"] as string;
const sendTest = async (api: Api, { id }: WebhookBody) =>
  (await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`)).body;
const find = async (organization: TestOrganization, webhook: WebhookBody, id: string) =>
  (await deliveriesOf(await apiOf(organization), webhook)).find((told) => told.id === id);
const isEnabled = async (api: Api, { id }: WebhookBody) =>
  (await api.get<WebhookBody>(`/v1/webhooks/${id}`)).body.enabled;

/** A webhook on a path of its own, and another one that shows that whatever was due has been looked for. */
async function setUp(path: string) {
  const organization = await service.createOrganization();
  const api = await apiOf(organization);
  const webhook = await createWebhook(api, receiver.url(path), ["webhook.test"]);
  await createWebhook(api, receiver.url(`${path}/canary`), ["link.created"]);
  const look = async () => {
    const before = receiver.received(`${path}/canary`).length;
    await (await apiOf(organization)).createLink();
    await receiver.waitFor(`${path}/canary`, before + 1);
  };
  return { organization, api, webhook, look };
}

/** Waits for an attempt, then lets the time pass until the next one is due; in between nothing is sent. */
async function throughSchedule(
  { organization, webhook, look }: Awaited<ReturnType<typeof setUp>>,
  id: string,
  onAttempt: (told: DeliveryBody, number: number) => void | Promise<void>,
): Promise<DeliveryBody> {
  const path = new URL(webhook.url).pathname;
  const came = () => receiver.received(path).filter((request) => idOf(request) === id).length;
  for (let number = 1; ; number++) {
    const told = await until(async () => {
      const found = await find(organization, webhook, id);
      return found?.attempts.length === number ? found : undefined;
    });
    await onAttempt(told, number);
    if (told.next_attempt_at === null) return told;
    const due = Date.parse(told.next_attempt_at);
    advanceClock(due - Date.now() - 2_000);
    await look();
    if (came() !== number) throw new Error(`attempt ${number + 1} came early`);
    advanceClock(due - Date.now() + 1);
  }
}

test.serial(
  "sec 132: a delivery is tried ten times in three days, with one id and a fresh timestamp",
  async (t) => {
    const parts = await setUp("/fails");
    const { organization, api, webhook } = parts;
    receiver.answer("/fails", (response) => response.writeHead(500).end());
    const { id } = await sendTest(api, webhook);
    const last = await throughSchedule(parts, id, (told, number) => {
      const request = receiver.received("/fails").at(-1) as Received;
      t.is(idOf(request), id);
      // The independent verifier refuses timestamps that are five minutes off.
      t.like(verify(request, webhook.secret), { type: "webhook.test" });
      const attempt = told.attempts.at(-1);
      const pause = PAUSES_MS[number - 1];
      if (pause === undefined || told.next_attempt_at === null) return;
      const actual = Date.parse(told.next_attempt_at) - Date.parse(attempt?.at ?? "") - (attempt?.ms ?? 0);
      t.true(actual > pause * 0.89 && actual < pause * 1.11 + 1_000, `${number}: ${actual}`);
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

    // Nothing has arrived for three days.
    t.false(await isEnabled(await apiOf(organization), webhook));
    const owner = await createColleague(service, organization.id);
    type Log = { data: { type: string; actor: string; summary: string; data: object }[] };
    const { body } = await owner.api.get<Log>(
      `/dashboard/organizations/${organization.id}/audit?type=webhook.disabled`,
    );
    t.is(body.data.length, 1);
    t.like(body.data[0], { actor: "system", data: { url: webhook.url } });
    t.regex(body.data[0]?.summary ?? "", /switched the webhook http.*\/fails off: Nothing has arrived there/);
  },
);

test.serial("pauses differ from delivery to delivery", async (t) => {
  const { api, webhook } = await setUp("/jitter");
  receiver.answer("/jitter", (response) => response.writeHead(500).end());
  for (let round = 0; round < 8; round++) await sendTest(api, webhook);
  const told = await until(async () => {
    const all = await deliveriesOf(api, webhook);
    return all.every(({ attempts }) => attempts.length > 0) ? all : undefined;
  });
  const pauses = told.map(
    ({ attempts: [first], next_attempt_at }) =>
      Date.parse(next_attempt_at ?? "") - Date.parse(first?.at ?? "") - (first?.ms ?? 0),
  );
  t.true(new Set(pauses).size > 4, `${pauses}`);
});

test.serial("a delivery that fails for good disables nothing where others arrive", async (t) => {
  const parts = await setUp("/partly");
  const { organization, api, webhook } = parts;
  const { id } = await createFailing();
  const last = await throughSchedule(parts, id, async (_told, number) => {
    if (number !== 9) return;
    const { id: other } = await sendTest(await apiOf(organization), webhook);
    await until(async () => (await find(organization, webhook, other))?.status === "succeeded" || undefined);
  });
  t.is(last.status, "failed");
  t.true(await isEnabled(await apiOf(organization), webhook));

  async function createFailing() {
    const failing = Promise.withResolvers<string>();
    receiver.answer("/partly", async (response, { headers }) =>
      response.writeHead(headers["webhook-id"] === (await failing.promise) ? 500 : 204).end(),
    );
    const made = await sendTest(api, webhook);
    failing.resolve(made.id);
    return made;
  }
});

test.serial("whoever mends a receiver in time is told, and not disabled", async (t) => {
  const parts = await setUp("/mended");
  const { organization, api, webhook } = parts;
  receiver.answer("/mended", (response) => response.writeHead(503).end());
  const { id } = await sendTest(api, webhook);
  const last = await throughSchedule(parts, id, (_told, number) => {
    if (number === 9) receiver.answer("/mended", (response) => response.writeHead(204).end());
  });
  t.is(last.status, "succeeded");
  t.is(last.attempts.length, 10);
  t.true(await isEnabled(await apiOf(organization), webhook));
});
