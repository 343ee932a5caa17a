import test, { type ExecutionContext } from "ava";
import type { LeasedDelivery, Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";
import { createWebhooks, settle } from "../../harness/database/webhooks.ts";
import { LEASE_LIMITS, markVerified } from "../../harness/webhooks.ts";

export const databases = "all";

// No dispatcher runs here: the tests lease deliveries as processes do.
const storage = await createTestStorage();
const { first, second, either, database, knex, createLink } = storage;
test.afterEach.always(() => knex("deliveries").delete());

const unverified = (count = 1) => createWebhooks(storage, count, { verified: false });
const typesOf = (leased: LeasedDelivery[]) => leased.map(({ event }) => event.type);
const isVerified = async (organizationId: string, { id }: Webhook) =>
  (await first.webhooks.find(organizationId, id))?.verified;
const lease = (by = first, changes = {}) => by.deliveries.lease({ ...LEASE_LIMITS, ...changes });

async function leaseTest(t: ExecutionContext): Promise<LeasedDelivery> {
  const leased = await lease();
  t.deepEqual(typesOf(leased), ["webhook.test"]);
  return leased[0] as LeasedDelivery;
}

test.serial("deliveries that waited are leased in the order of their events", async (t) => {
  const { id, webhook } = await unverified();
  const verification = await leaseTest(t);
  for (let index = 0; index < 5; index++) {
    await createLink(id);
    advanceClock(10);
  }
  t.deepEqual(await lease(second), []);
  t.is((await knex("deliveries").where("due_at", "<=", Date.now())).length, 0, "they are held");
  await settle(second, verification);
  t.true(await isVerified(id, webhook));
  const ids: string[] = [];
  for (let index = 0; index < 5; index++)
    ids.push((await lease(either(index), { max: 1 }))[0]?.event.id ?? "");
  t.deepEqual(ids, [...ids].sort());
  t.is(new Set(ids).size, 5);
});

test.serial("when the time for the verification has ended, deliveries stop waiting", async (t) => {
  const { id } = await unverified();
  await leaseTest(t);
  await createLink(id);
  t.deepEqual(await lease(), []);
  advanceClock(3 * 60 * 60_000);
  t.deepEqual(typesOf(await lease()).sort(), ["link.created", "webhook.test"]);
});

test.serial("an event concurrent with the verification is never left waiting", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { id } = await unverified();
    const verification = await leaseTest(t);
    const leased: LeasedDelivery[] = [];
    const leaseBy = async (by: typeof first) => void leased.push(...(await lease(by)));
    await Promise.all([
      ...Array.from({ length: 4 }, () => createLink(id).then(() => leaseBy(second))),
      settle(first, verification),
      leaseBy(first),
      leaseBy(second),
    ]);
    await leaseBy(first);
    // A lease that read the webhook before its verification returns its deliveries to the queue.
    for (const one of leased.filter(({ unverifiedUntil }) => unverifiedUntil !== null))
      await second.deliveries.hold(one);
    await leaseBy(second);
    const ids = leased.filter(({ unverifiedUntil }) => unverifiedUntil === null).map(({ event }) => event.id);
    t.is(new Set(ids).size, 4);
  }
});

test.serial("a delivery leased before the URL changed is held, until the new URL is verified", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  await createLink(id);
  const moveTo = (url: string, by = first) => by.webhooks.update(id, webhook.id, { url }, OPERATOR);
  t.false(((await moveTo("https://example.com/other")) as Webhook).verified);
  const former = await leaseTest(t);
  await moveTo("https://example.com/third", second);
  await settle(first, former);
  t.false(await isVerified(id, webhook), "the former URL accepted it");
  const again = await leaseTest(t);
  t.is(again.url, "https://example.com/third");
  await settle(second, again);
  t.true(await isVerified(id, webhook));
  t.deepEqual(typesOf(await lease()), ["link.created"]);
});

test.serial("2,000 deliveries to 20 unverified webhooks are read once, and delay no other", async (t) => {
  const hostile = await unverified(20);
  await knex("deliveries").delete();
  for (const { id } of hostile.webhooks) await first.webhooks.test(hostile.id, id, OPERATOR);
  const tests = await lease();
  t.is(tests.length, 20);
  const other = await unverified();
  await markVerified(database, [other.webhook.id]);
  await atOnce(100, () => createLink(hostile.id));
  await createLink(other.id);
  t.is((await lease(second)).map(({ organizationId }) => organizationId).join(), other.id);
  const due = () => knex("deliveries").where("due_at", "<=", Date.now()).whereNull("leased_by");
  // Each lease holds some of them; the dispatcher repeats it every second.
  for (let round = 0; (await due()).length > 0 && round < 20; round++) t.deepEqual(await lease(second), []);
  t.is((await due()).length, 0);

  const statements: string[] = [];
  const unsubscribe = second.onStatement((sql) => void statements.push(sql));
  await createLink(other.id);
  t.is((await lease(second))[0]?.organizationId, other.id);
  unsubscribe();
  t.is(statements.filter((sql) => /^update \W?deliveries/i.test(sql)).length, 1, "only the lease");
  await settle(first, tests[0] as LeasedDelivery);
  const verified = await lease(first, { max: 300, perWebhook: 300, perHost: 300, perOrganization: 300 });
  t.is(verified.length, 100);
  t.is(new Set(verified.map(({ webhookId }) => webhookId)).size, 1);
});
