import test from "ava";
import { limitsOf } from "../../../resources/plans.ts";
import type { LeasedDelivery, Outcome, Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";
import { createWebhooks, settle } from "../../harness/database/webhooks.ts";
import { LEASE_LIMITS } from "../../harness/webhooks.ts";

export const databases = "all";

// No dispatcher runs here: the tests lease deliveries as processes do.
const storage = await createTestStorage();
const { first, second, either, knex, createLink } = storage;
test.afterEach.always(() => knex("deliveries").delete());

const TAKEOVER_MS = 20_000;
const FAILING = LEASE_LIMITS.failing;
const GONE = { status: "failed", disable: "The endpoint responded with 410 Gone." } as const;

const newLinks = (organizationId: string, count: number) => atOnce(count, () => createLink(organizationId));
const lease = (changes = {}, by = first) => by.deliveries.lease({ ...LEASE_LIMITS, ...changes });
const settleAll = (leased: LeasedDelivery[], by = first) => Promise.all(leased.map((one) => settle(by, one)));
const keyOf = ({ webhookId, event }: LeasedDelivery) => `${webhookId} ${event.id}`;
const rowOf = ({ id }: Webhook) => knex("webhooks").where({ id }).first();
const change = (ids: string[], values: object) => knex("webhooks").whereIn("id", ids).update(values);

test.serial("concurrent processes never lease the same delivery", async (t) => {
  const { id } = await createWebhooks(storage, 5);
  const all: LeasedDelivery[] = [];
  for (let round = 0; round < 3; round++) {
    await newLinks(id, 20);
    for (let idle = 0; idle < 3; ) {
      const found = (await atOnce(4, (index) => lease({ max: 7 }, either(index)))).flat();
      all.push(...found);
      idle = found.length === 0 ? idle + 1 : 0;
    }
  }
  t.is(all.length, 3 * 20 * 5);
  t.is(new Set(all.map(keyOf)).size, all.length);
  await Promise.all(all.map((leased, index) => settle(either(index), leased)));
  advanceClock(TAKEOVER_MS);
  t.deepEqual(await lease(), []);
});

test.serial("a delivery leased by a dead process is leased by another one within 20 s", async (t) => {
  const { id } = await createWebhooks(storage);
  await createLink(id);
  const [leased] = await lease();
  t.deepEqual(await lease({}, second), []);
  advanceClock(15_000);
  t.deepEqual(await lease({}, second), [], "the maximum duration of an attempt");
  // Processes poll every second.
  advanceClock(TAKEOVER_MS - 15_000 - 1_000);
  const [again] = await lease({}, second);
  t.is(again?.event.id, leased?.event.id);
  t.is(again?.attemptCount, leased?.attemptCount, "the attempt of the dead process is not counted");
  t.not(again?.lease, leased?.lease);
});

test.serial("a process whose lease has expired changes nothing", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  await createLink(id);
  const [late] = (await lease()) as [LeasedDelivery];
  advanceClock(TAKEOVER_MS);
  const [current] = (await lease({}, second)) as [LeasedDelivery];
  await settle(first, late, GONE, { at: 0, status: 410, ms: 1 });
  await first.deliveries.postpone(late, Date.now() + 1e9);
  t.true((await first.webhooks.find(id, webhook.id))?.enabled);
  await settle(second, current);
  const [delivery] = await first.webhooks.deliveries(id, webhook.id, 1);
  t.like(delivery, { status: "succeeded", nextAttemptAt: null });
  t.is(delivery?.attempts.length, 1);
});

test.serial("exactly the committed changes have an event and deliveries", async (t) => {
  const { id, webhooks } = await createWebhooks(storage, 2);
  // Half of the links compete for one slug within a batch.
  const slugs = await atOnce(30, async (index) => {
    const slug = index % 2 ? `own-${index}` : "shared";
    return createLink(id, { slug }, either(index))
      .then(() => slug)
      .catch(() => "");
  });
  const created = slugs.filter(Boolean).sort();
  t.is(created.length, 16);
  for (const webhook of webhooks) {
    const deliveries = await first.webhooks.deliveries(id, webhook.id, 100);
    const delivered = deliveries.map(({ event }) => (event.data as { link: { slug: string } }).link.slug);
    t.deepEqual(delivered.sort(), created);
  }
  t.is((await knex("events").where({ organization_id: id, type: "link.created" })).length, 16);
});

test.serial("limits hold per webhook, in total, and of failing ones per host and organization", async (t) => {
  const { id, webhooks } = await createWebhooks(storage, 3);
  const [fine, weak, dead] = webhooks as [Webhook, Webhook, Webhook];
  await change([weak.id, dead.id], { failing_since: 1 });
  await newLinks(id, 10);
  const limits = { perWebhook: 4, failing: { ...FAILING, perWebhook: 1 } };
  const leased = await lease(limits);
  const countOf = (webhook: Webhook) => leased.filter(({ webhookId }) => webhookId === webhook.id).length;
  t.deepEqual([fine, weak, dead].map(countOf), [4, 1, 1]);
  const inFlight = new Map(webhooks.map((webhook) => [webhook.id, countOf(webhook)]));
  t.deepEqual(await lease({ ...limits, inFlight }), []);
  const others = await lease({ failing: { ...FAILING, max: 0 } }, second);
  t.deepEqual(new Set(others.map(({ webhookId }) => webhookId)), new Set([fine.id]));
  t.is((await lease({ max: 3 }, second)).length, 3);
  for (const place of ["perHost", "perOrganization"])
    t.is((await lease({ failing: { ...FAILING, [place]: 2 } }, second)).length, 2, place);
});

test.serial("organizations with a backlog take turns, within their limits and those per host", async (t) => {
  const [many, few] = [await createWebhooks(storage, 6), await createWebhooks(storage)];
  await newLinks(many.id, 50);
  await newLinks(few.id, 2);
  const countOf = (leased: LeasedDelivery[], id: string) =>
    leased.filter(({ organizationId }) => organizationId === id).length;
  const turns = [...(await lease({ max: 1 }, second)), ...(await lease({ max: 1 }, second))];
  t.is(countOf(turns, few.id), 1, "one of each organization, although the other has six webhooks");
  const some = await lease({ max: 20, perOrganization: 8 });
  t.is(countOf(some, many.id), 8);
  t.is(countOf(some, few.id), 1, "created after 300 others");
  t.is((await lease({ perHost: 5 }, second)).length, 5);
  t.deepEqual(await lease({ inFlight: new Map([[many.id, 100]]) }, second), []);
});

test.serial("an endpoint that is blocked after failures gets nothing meanwhile", async (t) => {
  const { id, webhooks } = await createWebhooks(storage, 5);
  const [blocked, slow] = webhooks as [Webhook, Webhook];
  await change([blocked.id], { blocked_until: Date.now() + 60_000 });
  await newLinks(id, 50);
  const limits = { slow: new Set([slow.id]), failing: { ...FAILING, perWebhook: 1 } };
  const leased = await lease(limits);
  t.is(leased.length, 100);
  t.false(leased.some(({ webhookId }) => webhookId === blocked.id));
  t.is(leased.filter(({ webhookId }) => webhookId === slow.id).length, 1);
  await settleAll(leased);
  advanceClock(60_000);
  t.true((await lease()).some(({ webhookId }) => webhookId === blocked.id));
});

test.serial("a failing endpoint gets a test event, or what was resent, before its backlog", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  for (let link = 0; link < 3; link++) await createLink(id);
  const [newest] = await first.webhooks.deliveries(id, webhook.id, 1);
  const resend = () => first.webhooks.resend(id, webhook.id, newest?.event.id ?? "");
  for (const ask of [resend, () => first.webhooks.test(id, webhook.id, OPERATOR)]) {
    await change([webhook.id], { failing_since: 1, failures: 5 });
    const asked = await ask();
    const leased = await lease({ failing: { ...FAILING, perWebhook: 1 } });
    t.is(leased.map(({ event }) => event.id).join(), asked?.event.id ?? "");
    await settleAll(leased);
  }
});

test.serial("an accepted delivery that took too long makes its endpoint slow until a fast one", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  for (const isSlow of [true, false]) {
    await createLink(id);
    const [leased] = (await lease()) as [LeasedDelivery];
    await settle(second, leased, { status: "succeeded", isSlow }, { at: 7, status: 204, ms: 1 });
    t.is((await rowOf(webhook))?.slow_since, isSlow ? 7 : null);
  }
});

test.serial("deliveries over the daily quota wait for the next day, also with two processes", async (t) => {
  const { id, webhooks } = await createWebhooks(storage, 2);
  const quota = { limitsOf: () => ({ ...limitsOf("growth"), deliveries_per_day: 7 }) };
  const today = () => first.webhooks.countDeliveriesToday(id);
  const reached = () => first.audit.list(id, { types: ["webhook.quota_reached"] }, 100);
  // Each process delivers to one of the webhooks, so neither waits for a row that the other has leased.
  async function leaseAll() {
    const all: LeasedDelivery[] = [];
    for (let found: LeasedDelivery[] | undefined; found?.length !== 0; all.push(...found)) {
      const ofEach = webhooks.map((busy, index) => {
        const inFlight = new Map([[busy.id, LEASE_LIMITS.perWebhook]]);
        return lease({ ...quota, inFlight, max: 3 }, either(index));
      });
      found = (await Promise.all(ofEach)).flat();
    }
    return all;
  }
  await newLinks(id, 10);
  const leased = await leaseAll();
  t.deepEqual([leased.length, await today()], [7, 7]);
  const failed: Outcome = { status: "pending", retryAt: 0 };
  for (const one of leased) await settle(first, one, failed, { at: 0, status: 500, ms: 1 });
  const retried = await lease(quota);
  t.deepEqual(retried.map(keyOf).sort(), leased.map(keyOf).sort(), "retries are not counted");
  t.is(await today(), 7);
  await settleAll(retried);
  const data = (await reached()).map((entry) => entry.data);
  t.deepEqual(data, [{ deliveries_per_day: 7 }]);

  advanceClock(DAY_MS);
  t.is(await today(), 0);
  t.is((await leaseAll()).length, 7);
  t.is(await today(), 7);
  t.is((await reached()).length, 2, "once per day");
});

test.serial("deliveries of a suspended organization count toward the quota when they are sent", async (t) => {
  const { id } = await createWebhooks(storage);
  const quota = { limitsOf: () => ({ ...limitsOf("growth"), deliveries_per_day: 2 }) };
  const holdMs = 5 * 60_000;
  await first.suspensions.suspend(id, null, OPERATOR);
  await newLinks(id, 2);
  for (let round = 0; round < 3; round++) {
    const leased = await lease(quota);
    for (const one of leased) await first.deliveries.postpone(one, Date.now() + holdMs);
    t.deepEqual([leased.length, leased.every(({ suspended }) => suspended)], [2, true]);
    t.is(await first.webhooks.countDeliveriesToday(id), 0);
    advanceClock(holdMs);
  }
  await first.suspensions.resume(id, OPERATOR);
  t.is((await lease(quota)).length, 2);
  t.is(await first.webhooks.countDeliveriesToday(id), 2);
});

test.serial("orphaned deliveries of a deleted webhook are removed and block nothing", async (t) => {
  const { id, webhooks } = await createWebhooks(storage, 2);
  await newLinks(id, 5);
  const [gone, left] = webhooks as [Webhook, Webhook];
  const rows = await knex("deliveries").where({ webhook_id: gone.id });
  t.true(await first.webhooks.remove(id, gone.id, OPERATOR));
  // Simulates a link created while the webhook was being deleted.
  await knex("deliveries").insert(rows);
  const leased = await lease({}, second);
  t.is(leased.length, 5);
  t.true(leased.every(({ webhookId }) => webhookId === left.id));
  t.deepEqual(await knex("deliveries").where({ webhook_id: gone.id }), []);
});

const LATER = { status: "pending", retryAt: 0, pauseUntil: Date.now() + 1e9 } as const;
const FAILED = { at: 1, status: 410, ms: 1 };

for (const outcome of [GONE, LATER])
  test.serial(`an attempt to deliver to a former URL has no effect: ${outcome.status}`, async (t) => {
    const { id, webhook } = await createWebhooks(storage);
    await createLink(id);
    const [leased] = (await lease()) as [LeasedDelivery];
    await second.webhooks.update(id, webhook.id, { url: "https://example.com/new" }, OPERATOR);
    await settle(first, leased, outcome, FAILED);
    // The newest one is the test event that verifies the new URL.
    const [, delivery] = await second.webhooks.deliveries(id, webhook.id, 2);
    t.deepEqual(delivery?.attempts, [FAILED]);
    t.like(await rowOf(webhook), { failing_since: null, paused_until: null, disabled_reason: null });
  });

test.serial("a webhook that recovered during an attempt is not disabled for earlier failures", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  await change([webhook.id], { failing_since: 1 });
  await newLinks(id, 2);
  const [failing, recovered] = (await lease()) as [LeasedDelivery, LeasedDelivery];
  await settle(second, recovered);
  const dead = { status: "failed", disable: "All deliveries have failed for days." } as const;
  await settle(first, failing, dead, { at: 2, status: 500, ms: 1 });
  t.like(await second.webhooks.find(id, webhook.id), { enabled: true, disabledReason: null });
});

test.serial("the last success is stored once a minute, until the URL changes", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  const update = (changes: object) => first.webhooks.update(id, webhook.id, changes, OPERATOR);
  const lastSuccess = async () => (await first.webhooks.find(id, webhook.id))?.lastSuccessAt;
  async function deliver() {
    await createLink(id);
    for (const leased of await lease())
      await settle(first, leased, { status: "succeeded" }, { at: Date.now(), status: 204, ms: 1 });
    return (await lastSuccess()) ?? 0;
  }
  const success = await deliver();
  t.true(success > 0);
  advanceClock(30_000);
  t.is(await deliver(), success);
  advanceClock(31_000);
  t.true((await deliver()) >= success + 61_000);
  await update({ events: ["link.deleted"] });
  t.truthy(await lastSuccess());
  await update({ url: "https://example.com/after" });
  t.is(await lastSuccess(), null);
});

test.serial("a resend has a limit, and the rest is counted", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  await newLinks(id, 12);
  await knex("deliveries").update({ status: "failed", due_at: null });
  t.is(await first.webhooks.countFailed(id, webhook.id, 5), 5);
  t.is(await first.webhooks.resendFailed(id, webhook.id, 5), 5);
  t.is(await first.webhooks.countFailed(id, webhook.id, 100), 7);
  t.is(await first.webhooks.resendFailed("org_other", webhook.id, 100), 0);
  t.is(await first.webhooks.countFailed("org_other", webhook.id, 100), 0);
  t.is((await lease()).length, 5);
});
