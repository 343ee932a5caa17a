import test, { type ExecutionContext } from "ava";
import type { Storage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { LeasedDelivery, LeaseLimits, Outcome, Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { LEASE_LIMITS, markVerified } from "../../harness/webhooks.ts";

export const databases = "all";

// No dispatcher runs here: the tests lease deliveries as processes do.
const { first, second, database, close } = await createTestStorage();

test.after.always(() => close());

/** Deletes what a test left. */
test.afterEach.always(() => database.knex("deliveries").delete());

const HOUR_MS = 60 * 60 * 1000;
const ACCEPTED: Outcome = { status: "succeeded" };
let count = 0;

async function newOrganization(webhooks = 1) {
  const { organization } = await first.organizations.create("Verification", "growth", OPERATOR);
  const created: Webhook[] = [];
  for (let index = 0; index < webhooks; index++) {
    const fields = { url: `https://example.com/${index}`, events: ["link.created" as const], enabled: true };
    const secret = newWebhookSecret();
    created.push((await first.webhooks.create(organization.id, OPERATOR, fields, secret)) as Webhook);
  }
  return { id: organization.id, webhooks: created, webhook: created[0] as Webhook };
}

const createLink = (organizationId: string) =>
  first.links.create(organizationId, OPERATOR, linkFields({ slug: `verified-${++count}` }));
const settle = ({ deliveries }: Storage, leased: LeasedDelivery, outcome: Outcome) =>
  deliveries.settle(leased, { at: Date.now(), status: 204, ms: 1 }, outcome);
const typesOf = (leased: LeasedDelivery[]) => leased.map(({ event }) => event.type);
const find = async (organizationId: string, { id }: Webhook) => first.webhooks.find(organizationId, id);

async function leaseTest(t: ExecutionContext): Promise<LeasedDelivery> {
  const leased = await first.deliveries.lease(LEASE_LIMITS);
  t.deepEqual(typesOf(leased), ["webhook.test"]);
  return leased[0] as LeasedDelivery;
}

test.serial("deliveries that waited are leased in the order of their events", async (t) => {
  const { id, webhook } = await newOrganization();
  const verification = await leaseTest(t);
  for (let index = 0; index < 5; index++) {
    await createLink(id);
    advanceClock(10);
  }
  t.deepEqual(await second.deliveries.lease(LEASE_LIMITS), []);
  t.is((await database.knex("deliveries").where("due_at", "<=", Date.now())).length, 0, "they are held");
  await settle(second, verification, ACCEPTED);
  t.true((await find(id, webhook))?.verified);
  const ids: string[] = [];
  for (let index = 0; index < 5; index++) {
    const [leased] = await (index % 2 ? first : second).deliveries.lease({ ...LEASE_LIMITS, max: 1 });
    ids.push(leased?.event.id ?? "");
  }
  t.deepEqual(ids, [...ids].sort());
  t.is(new Set(ids).size, 5);
});

test.serial("an event concurrent with the verification is never left waiting", async (t) => {
  for (let round = 0; round < 10; round++) {
    const { id } = await newOrganization();
    const verification = await leaseTest(t);
    const leased: LeasedDelivery[] = [];
    const lease = async ({ deliveries }: Storage) =>
      void leased.push(...(await deliveries.lease(LEASE_LIMITS)));
    await Promise.all([
      ...Array.from({ length: 4 }, () => createLink(id).then(() => lease(second))),
      settle(first, verification, ACCEPTED),
      lease(first),
      lease(second),
    ]);
    await lease(first);
    // A lease that read the webhook before its verification returns its deliveries to the queue.
    for (const one of leased.filter(({ unverifiedUntil }) => unverifiedUntil !== null))
      await second.deliveries.hold(one);
    await lease(second);
    const ids = leased.filter(({ unverifiedUntil }) => unverifiedUntil === null).map(({ event }) => event.id);
    t.is(new Set(ids).size, 4);
  }
});

test.serial(
  "a delivery that was leased before the URL changed is held, until the new URL is verified",
  async (t) => {
    const { id, webhook } = await newOrganization();
    await markVerified(database, [webhook.id]);
    await createLink(id);
    const changes = { url: "https://example.com/other" };
    t.false(((await first.webhooks.update(id, webhook.id, changes, OPERATOR)) as Webhook).verified);
    const leased = await first.deliveries.lease(LEASE_LIMITS);
    t.deepEqual(typesOf(leased), ["webhook.test"]);
    await second.webhooks.update(id, webhook.id, { url: "https://example.com/third" }, OPERATOR);
    await settle(first, leased[0] as LeasedDelivery, ACCEPTED);
    t.false((await find(id, webhook))?.verified, "the former URL accepted it");
    const again = await leaseTest(t);
    t.is(again.url, "https://example.com/third");
    await settle(second, again, ACCEPTED);
    t.true((await find(id, webhook))?.verified);
    t.deepEqual(typesOf(await first.deliveries.lease(LEASE_LIMITS)), ["link.created"]);
  },
);

test.serial("when the time for the verification has ended, deliveries stop waiting", async (t) => {
  const { id, webhook } = await newOrganization();
  await leaseTest(t);
  await createLink(id);
  t.deepEqual(await first.deliveries.lease(LEASE_LIMITS), []);
  advanceClock(3 * HOUR_MS);
  const leased = await first.deliveries.lease(LEASE_LIMITS);
  t.deepEqual(typesOf(leased).sort(), ["link.created", "webhook.test"]);
  await createLink(id);
  t.is((await database.knex("deliveries").where({ webhook_id: webhook.id })).length, 2, "none is added");
});

test.serial("4,000 deliveries to 20 unverified webhooks are read once, and delay no other", async (t) => {
  const hostile = await newOrganization(20);
  await database.knex("deliveries").delete();
  for (const { id } of hostile.webhooks) await first.webhooks.test(hostile.id, id, OPERATOR);
  const tests = await first.deliveries.lease(LEASE_LIMITS);
  t.is(tests.length, 20);
  const other = await newOrganization();
  await markVerified(database, [other.webhook.id]);
  await atOnce(200, () => createLink(hostile.id));
  await createLink(other.id);
  const [leased, ...others] = await second.deliveries.lease(LEASE_LIMITS);
  t.is(leased?.organizationId, other.id);
  t.deepEqual(others, []);
  const due = () => database.knex("deliveries").where("due_at", "<=", Date.now()).whereNull("leased_by");
  // Each lease holds some of them; the dispatcher repeats it every second.
  for (let round = 0; (await due()).length > 0 && round < 20; round++)
    t.deepEqual(await second.deliveries.lease(LEASE_LIMITS), []);
  t.is((await due()).length, 0);

  const statements: string[] = [];
  const unsubscribe = second.onStatement((sql) => void statements.push(sql));
  await createLink(other.id);
  t.is((await second.deliveries.lease(LEASE_LIMITS))[0]?.organizationId, other.id);
  unsubscribe();
  t.is(statements.filter((sql) => /^update \W?deliveries/i.test(sql)).length, 1, "only the lease");
  await settle(first, tests[0] as LeasedDelivery, ACCEPTED);
  const verified = await first.deliveries.lease({
    ...LEASE_LIMITS,
    max: 300,
    perWebhook: 300,
    perHost: 300,
    perOrganization: 300,
  });
  t.is(verified.length, 200);
  t.is(new Set(verified.map(({ webhookId }) => webhookId)).size, 1);
});

const USAGE_LIMITS: LeaseLimits = {
  ...LEASE_LIMITS,
  limitsOf: () => ({ ...limitsOf("growth"), deliveries_per_day: 2 }),
};
const HOLD_MS = 5 * 60_000;

async function newWebhook() {
  const { organization } = await first.organizations.create("Usage", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["link.created" as const], enabled: true };
  const webhook = await first.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret());
  await markVerified(database, [(webhook as Webhook).id]);
  return webhook as Webhook;
}
const today = ({ organizationId }: Webhook) => first.webhooks.countDeliveriesToday(organizationId);

test.serial("deliveries of a suspended organization count toward the quota when they are sent", async (t) => {
  const webhook = await newWebhook();
  const { organizationId } = webhook;
  await first.suspensions.suspend(organizationId, null, OPERATOR);
  await createLink(organizationId);
  await createLink(organizationId);
  for (let round = 0; round < 3; round++) {
    const leased = await first.deliveries.lease(USAGE_LIMITS);
    for (const one of leased) await first.deliveries.postpone(one, Date.now() + HOLD_MS);
    t.deepEqual(
      leased.map(({ suspended }) => suspended),
      [true, true],
    );
    t.is(await today(webhook), 0);
    advanceClock(HOLD_MS);
  }
  await first.suspensions.resume(organizationId, OPERATOR);
  t.is((await first.deliveries.lease(USAGE_LIMITS)).length, 2);
  t.is(await today(webhook), 2);
});
