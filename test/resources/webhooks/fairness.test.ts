import test from "ava";
import { apiAt } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";
import { createWebhook, deliveriesOf, delivery, until } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const newcomer = async () => {
  const organization = await service.createOrganization();
  return { organization, api: apiAt(service.url, await service.token(organization)) };
};
test.after.always(() => Promise.all([service.close(), receiver.close()]));

/** Holds what comes to a path back until it is let go. */
function hold(path: string, status = 204) {
  const { promise, resolve } = Promise.withResolvers<void>();
  receiver.answer(path, (response) => void promise.then(() => response.writeHead(status).end()));
  return resolve;
}

test.serial("a receiver that hangs, with hundreds of events waiting, delays no other one's", async (t) => {
  const [slow, fast] = [await newcomer(), await newcomer()];
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
  t.true(receiver.received("/hangs").length <= 10, "so much at a time, and no more");
  release();
  await receiver.waitFor("/hangs", 300);
  const ids = receiver.received("/hangs").map(({ headers }) => headers["webhook-id"]);
  t.is(new Set(ids).size, 300, "each is told once");
  t.is((await deliveriesOf(slow.api, hanging)).length, 100, "the page is full");
});

test.serial("a webhook that hangs delays no other one of its own organization", async (t) => {
  const { api } = await newcomer();
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

test.serial("a hundred and twenty receivers that fail and then hang leave room for the others", async (t) => {
  const owners = await atOnce(6, newcomer);
  const paths = owners.flatMap((_, owner) => Array.from({ length: 20 }, (__, n) => `/dead-${owner}-${n}`));
  for (const path of paths) receiver.answer(path, (response) => response.writeHead(500).end());
  for (const [index, path] of paths.entries())
    await createWebhook(owners[Math.floor(index / 20)]?.api as never, receiver.url(path));
  for (const { api } of owners) await api.createLink();
  await Promise.all(paths.map((path) => receiver.waitFor(path, 1)));
  const release = paths.map((path) => hold(path, 500));
  advanceClock(10_000);
  const hanging = () => paths.filter((path) => receiver.received(path).length === 2).length;
  await until(async () => hanging() >= 100 || undefined);

  const { api } = await newcomer();
  const webhook = await createWebhook(api, receiver.url("/alive"));
  await api.createLink();
  const told = await delivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(told.attempts.length, 1);
  t.is(hanging(), 100, "half of the room");
  for (const letGo of release) letGo();
  await Promise.all(paths.map((path) => receiver.waitFor(path, 2)));
});

test.serial(
  "a receiver that fails is asked one thing at a time, and everything once it answers",
  async (t) => {
    const { api } = await newcomer();
    receiver.answer("/weak", (response) => response.writeHead(500).end());
    const webhook = await createWebhook(api, receiver.url("/weak"));
    await api.createLink();
    await delivery(api, webhook, ({ attempts }) => attempts.length === 1);
    const release = hold("/weak");
    for (let round = 0; round < 5; round++) await api.createLink();
    await receiver.waitFor("/weak", 2);
    const { api: other } = await newcomer();
    const canary = await createWebhook(other, receiver.url("/canary"));
    await other.createLink();
    await delivery(other, canary, ({ status }) => status === "succeeded");
    t.is(receiver.received("/weak").length, 2);
    release();
    await receiver.waitFor("/weak", 6);
  },
);
