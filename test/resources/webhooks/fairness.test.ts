import type { ServerResponse } from "node:http";
import test from "ava";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf, until, waitForDelivery } from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });

test.after.always(() => Promise.all([service.close(), receiver.close()]));
test.after.always(() => timers.forEach(clearTimeout));

const newOrganization = async () => {
  const organization = await service.createOrganization();
  return { organization, api: apiAt(service.url, await service.token(organization)) };
};

/** Delays the responses of a path until the returned function is called. */
function hold(path: string, status = 204) {
  const { promise, resolve } = Promise.withResolvers<void>();
  receiver.respond(path, (response) => void promise.then(() => response.writeHead(status).end()));
  return resolve;
}

test.serial("a hanging endpoint with hundreds of pending events delays no other endpoint", async (t) => {
  const [slow, fast] = [await newOrganization(), await newOrganization()];
  const release = hold("/hangs");
  const hanging = await createWebhook(slow.api, receiver.url("/hangs"));
  const links = Array.from({ length: 100 }, () => ({ url: "https://example.com/" }));
  for (let round = 0; round < 3; round++) await slow.api.send("POST", "/v1/links/bulk", { json: { links } });
  await receiver.waitFor("/hangs", 1);
  await createWebhook(fast.api, receiver.url("/quick"));
  for (let round = 1; round <= 5; round++) {
    await fast.api.createLink();
    await receiver.waitFor("/quick", round);
  }
  t.true(receiver.received("/hangs").length <= 10, "the limit per webhook");
  release();
  await receiver.waitFor("/hangs", 300);
  const ids = receiver.received("/hangs").map(({ headers }) => headers["webhook-id"]);
  t.is(new Set(ids).size, 300, "each event is delivered once");
  t.is((await deliveriesOf(slow.api, hanging)).length, 100, "the page is full");
});

test.serial("a hanging webhook delays no other webhook of its organization", async (t) => {
  const { api } = await newOrganization();
  const release = hold("/sibling");
  await createWebhook(api, receiver.url("/sibling"));
  const other = await createWebhook(api, receiver.url("/other-sibling"));
  for (let round = 0; round < 20; round++) await api.createLink();
  await receiver.waitFor("/other-sibling", 20);
  await until(
    async () => (await deliveriesOf(api, other)).every(({ status }) => status === "succeeded") || undefined,
  );
  t.true(receiver.received("/sibling").length <= 10);
  release();
  await receiver.waitFor("/sibling", 20);
});

test.serial("120 endpoints of a host that fail and then hang leave capacity for healthy ones", async (t) => {
  const owners = await atOnce(6, newOrganization);
  const paths = owners.flatMap((_, owner) => Array.from({ length: 20 }, (__, n) => `/dead-${owner}-${n}`));
  for (const path of paths) receiver.respond(path, (response) => response.writeHead(500).end());
  for (const [index, path] of paths.entries())
    await createWebhook(owners[Math.floor(index / 20)]?.api as never, receiver.url(path));
  for (const { api } of owners) await api.createLink();
  await Promise.all(paths.map((path) => receiver.waitFor(path, 1)));
  const release = paths.map((path) => hold(path, 500));
  advanceClock(10_000);
  const hanging = () => paths.filter((path) => receiver.received(path).length === 2).length;
  await until(async () => hanging() >= 20 || undefined);

  const { api } = await newOrganization();
  const webhook = await createWebhook(api, receiver.url("/alive"));
  await api.createLink();
  const delivered = await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(delivered.attempts.length, 1);
  t.is(hanging(), 20, "the limit of failing endpoints per host");
  for (const respond of release) respond();
  await Promise.all(paths.map((path) => receiver.waitFor(path, 2)));
});

test.serial("a failing endpoint gets one attempt at a time until one succeeds", async (t) => {
  const { api } = await newOrganization();
  receiver.respond("/weak", (response) => response.writeHead(500).end());
  const webhook = await createWebhook(api, receiver.url("/weak"));
  await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  const release = hold("/weak");
  for (let round = 0; round < 5; round++) await api.createLink();
  await receiver.waitFor("/weak", 2);
  const { api: other } = await newOrganization();
  const canary = await createWebhook(other, receiver.url("/canary"));
  await other.createLink();
  await waitForDelivery(other, canary, ({ status }) => status === "succeeded");
  t.is(receiver.received("/weak").length, 2);
  release();
  await receiver.waitFor("/weak", 6);
});

const newApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));

const WEBHOOKS = 20;
const SLOW_MS = 12_000;
// The ceiling per organization; without one, a single organization could occupy all 200 attempts of a process.
const PER_ORGANIZATION = 40;
const paths = Array.from({ length: WEBHOOKS }, (_, index) => `/slow-${index}`);
const timers = new Set<NodeJS.Timeout>();

/** Accepts every request, but only after 12 s. */
function acceptSlowly(response: ServerResponse) {
  timers.add(setTimeout(() => response.writeHead(200).end(), SLOW_MS));
}

async function createLinks(api: Api, count: number) {
  const links = Array.from({ length: count }, () => ({ url: "https://example.com/" }));
  await api.send("POST", "/v1/links/bulk", { json: { links } });
}

test("20 slow endpoints with 4,000 waiting deliveries don't delay another organization's event", async (t) => {
  const [hostile, other] = [await newApi(), await newApi()];
  for (const path of paths) await createWebhook(hostile, receiver.url(path));
  await createWebhook(other, receiver.url("/other"));
  for (const path of paths) receiver.respond(path, acceptSlowly);
  await createLinks(hostile, 100);
  await createLinks(hostile, 100);
  await Promise.all(paths.map((path) => receiver.waitFor(path, 1)));
  const start = performance.now();
  await other.createLink();
  await receiver.waitFor("/other", 1);
  const slow = paths.reduce((sum, path) => sum + receiver.received(path).length, 0);
  t.true(slow <= PER_ORGANIZATION, `${slow} requests to slow endpoints`);
  t.log(`delivered after ${Math.round(performance.now() - start)} ms`);
});
