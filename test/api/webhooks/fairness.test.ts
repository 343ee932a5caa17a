import test from "ava";
import type { Api } from "../../harness/clients/api.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import { createWebhook, until, waitForDelivery } from "../../harness/webhooks.ts";

const { receiver, respondWith, hold, subscribe, newApi } = await startWebhookService();

async function createLinks(api: Api, count: number) {
  const links = Array.from({ length: count }, () => ({ url: "https://example.com/" }));
  await api.send("POST", "/v1/links/bulk", { json: { links } });
}

const PER_WEBHOOK = 10;
const PER_ORGANIZATION = 40;

test.serial("a hanging endpoint delays no other, neither of its organization nor of another", async (t) => {
  const [slow, fast] = [await subscribe(), await subscribe()];
  await createWebhook(slow.api, receiver.url("/sibling"));
  const release = hold(slow.path);
  await createLinks(slow.api, 60);
  await receiver.waitFor("/sibling", 60);
  await fast.api.createLink();
  await receiver.waitFor(fast.path, 1);
  t.is(receiver.received(slow.path).length, PER_WEBHOOK);
  release();
  const ids = (await receiver.waitFor(slow.path, 60)).map(({ headers }) => headers["webhook-id"]);
  t.is(new Set(ids).size, 60, "each event is delivered once");
});

test.serial("an organization with many slow endpoints leaves capacity for others", async (t) => {
  const [hostile, other] = [await newApi(), await subscribe()];
  const paths = Array.from({ length: 6 }, (_, index) => `/slow-${index}`);
  for (const path of paths) await createWebhook(hostile, receiver.url(path));
  const release = paths.map((path) => hold(path));
  await createLinks(hostile, 2 * PER_WEBHOOK);
  const sent = () => paths.reduce((sum, path) => sum + receiver.received(path).length, 0);
  await until(async () => sent() >= PER_ORGANIZATION || undefined);
  await other.api.createLink();
  await receiver.waitFor(other.path, 1);
  t.is(sent(), PER_ORGANIZATION);
  for (const respond of release) respond();
  await Promise.all(paths.map((path) => receiver.waitFor(path, 2 * PER_WEBHOOK)));
});

test.serial("a failing endpoint gets one attempt at a time until one succeeds", async (t) => {
  const [{ api, webhook, path }, other] = [await subscribe(), await subscribe()];
  respondWith(path, 500);
  await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  const release = hold(path);
  for (let round = 0; round < 5; round++) await api.createLink();
  await receiver.waitFor(path, 2);
  await other.api.createLink();
  await waitForDelivery(other.api, other.webhook, ({ status }) => status === "succeeded");
  t.is(receiver.received(path).length, 2);
  release();
  await receiver.waitFor(path, 6);
});
