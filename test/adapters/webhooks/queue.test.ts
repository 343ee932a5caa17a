import test, { type ExecutionContext } from "ava";
import type { Storage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { LeasedDelivery, Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { LEASE_LIMITS, markVerified } from "../../harness/webhooks.ts";

export const databases = "all";

// No dispatcher runs here: the tests lease deliveries as processes do.
const { first, second, database, close } = await createTestStorage();
test.after.always(() => close());

const ATTEMPT = { at: 0, status: 204, ms: 1 };
const TAKEOVER_MS = 20_000;
let count = 0;

async function newOrganization(webhooks = 1) {
  const { organization } = await first.organizations.create("Deliveries", "growth", OPERATOR);
  const fields = { events: ["link.created" as const], enabled: true };
  const created = await atOnce(webhooks, (index) => {
    const url = `https://example.com/${index}`;
    return first.webhooks.create(organization.id, OPERATOR, { ...fields, url }, newWebhookSecret());
  });
  await markVerified(
    database,
    created.map((webhook) => (webhook as Webhook).id),
  );
  return { id: organization.id, webhooks: created as Webhook[] };
}

const createLink = (organizationId: string, storage: Storage = first) =>
  storage.links.create(organizationId, OPERATOR, linkFields({ slug: `delivery-${++count}` }));
const keyOf = ({ webhookId, event }: LeasedDelivery) => `${webhookId} ${event.id}`;
const settle = ({ deliveries }: Storage, leased: LeasedDelivery) =>
  deliveries.settle(leased, ATTEMPT, { status: "succeeded" });

/** Settles the deliveries that a test left. */
async function settleAll(t: ExecutionContext, storages = [first]) {
  advanceClock(TAKEOVER_MS);
  for (const storage of storages) {
    for (;;) {
      const leased = await storage.deliveries.lease(LEASE_LIMITS);
      if (leased.length === 0) break;
      await Promise.all(leased.map((one) => settle(storage, one)));
    }
  }
  t.deepEqual(await second.deliveries.lease(LEASE_LIMITS), []);
}

test.serial("concurrent processes never lease the same delivery", async (t) => {
  const { id } = await newOrganization(5);
  const leasedDeliveries: LeasedDelivery[] = [];
  for (let round = 0; round < 5; round++) {
    await atOnce(20, () => createLink(id));
    let idle = 0;
    while (idle < 3) {
      const found = await Promise.all(
        [first, second, first, second].map(({ deliveries }) => deliveries.lease({ ...LEASE_LIMITS, max: 7 })),
      );
      leasedDeliveries.push(...found.flat());
      idle = found.flat().length === 0 ? idle + 1 : 0;
    }
  }
  t.is(leasedDeliveries.length, 5 * 20 * 5);
  t.is(new Set(leasedDeliveries.map(keyOf)).size, leasedDeliveries.length);
  await Promise.all(leasedDeliveries.map((leased, index) => settle(index % 2 ? first : second, leased)));
  await settleAll(t);
});

test.serial("a delivery leased by a dead process is leased by another one within 20 s", async (t) => {
  const { id } = await newOrganization();
  await createLink(id);
  const [leased] = await first.deliveries.lease(LEASE_LIMITS);
  if (!leased) return t.fail();
  t.deepEqual(await second.deliveries.lease(LEASE_LIMITS), []);
  advanceClock(15_000);
  t.deepEqual(await second.deliveries.lease(LEASE_LIMITS), [], "the maximum duration of an attempt");
  // Processes poll every second.
  advanceClock(TAKEOVER_MS - 15_000 - 1_000);
  const [again] = await second.deliveries.lease(LEASE_LIMITS);
  t.is(again?.event.id, leased.event.id);
  t.is(again?.attemptCount, leased.attemptCount, "the attempt of the dead process is not counted");
  t.not(again?.lease, leased.lease);
  await settle(second, again as LeasedDelivery);
  await settleAll(t);
});

test.serial("a process whose lease has expired changes nothing", async (t) => {
  const { id, webhooks } = await newOrganization();
  await createLink(id);
  const [late] = await first.deliveries.lease(LEASE_LIMITS);
  advanceClock(TAKEOVER_MS);
  const [current] = await second.deliveries.lease(LEASE_LIMITS);
  if (!late || !current) return t.fail();
  const gone = { status: "failed", disable: "The endpoint responded with 410 Gone." } as const;
  await first.deliveries.settle(late, { at: 0, status: 410, ms: 1 }, gone);
  await first.deliveries.postpone(late, Date.now() + 1e9);
  t.true((await first.webhooks.find(id, webhooks[0]?.id ?? ""))?.enabled);
  await settle(second, current);
  const [delivery] = await first.webhooks.deliveries(id, current.webhookId, 1);
  t.like(delivery, { status: "succeeded", attempts: [ATTEMPT], nextAttemptAt: null });
  await settleAll(t);
});

test.serial("exactly the committed changes have an event and deliveries", async (t) => {
  const { id, webhooks } = await newOrganization(2);
  const slugs = await atOnce(30, async (index) => {
    // Half of the links compete for one slug within a batch.
    const slug = index % 2 ? `own-${count}-${index}` : `shared-${count}`;
    const created = await (index % 3 ? first : second).links.create(id, OPERATOR, linkFields({ slug }));
    return "taken" in created ? undefined : slug;
  });
  const created = slugs.filter((slug) => slug !== undefined).sort();
  t.is(created.length, 16);
  for (const webhook of webhooks) {
    const delivery = await first.webhooks.deliveries(id, webhook.id, 100);
    t.deepEqual(
      delivery.map(({ event }) => (event.data as { link: { slug: string } }).link.slug).sort(),
      created,
    );
  }
  const events = await database.knex("events").where({ organization_id: id, type: "link.created" });
  t.is(events.length, 16);
  await settleAll(t);
});

test.serial("the limits per webhook, for failing webhooks and in total are respected", async (t) => {
  const { id, webhooks } = await newOrganization(3);
  const [fine, weak, dead] = webhooks as [Webhook, Webhook, Webhook];
  await database.knex("webhooks").whereIn("id", [weak.id, dead.id]).update({ failing_since: 1 });
  await atOnce(10, () => createLink(id));
  const leased = await first.deliveries.lease({
    ...LEASE_LIMITS,
    perWebhook: 4,
    failing: { ...LEASE_LIMITS.failing, max: 10, perWebhook: 1 },
  });
  const countOf = ({ id: webhookId }: Webhook) => leased.filter((one) => one.webhookId === webhookId).length;
  t.deepEqual([fine, weak, dead].map(countOf), [4, 1, 1]);
  const inFlight = new Map([fine, weak, dead].map((webhook) => [webhook.id, countOf(webhook)]));
  const limits = {
    ...LEASE_LIMITS,
    perWebhook: 4,
    failing: { ...LEASE_LIMITS.failing, max: 8, perWebhook: 1 },
    inFlight,
  };
  t.deepEqual(await first.deliveries.lease(limits), []);
  const others = await second.deliveries.lease({
    ...LEASE_LIMITS,
    failing: { ...LEASE_LIMITS.failing, max: 0, perWebhook: 1 },
  });
  t.deepEqual(new Set(others.map(({ webhookId }) => webhookId)), new Set([fine.id]));
  const some = await second.deliveries.lease({ ...LEASE_LIMITS, max: 3 });
  t.is(some.length, 3);
  for (const one of leased) await settle(first, one);
  for (const one of [...others, ...some]) await settle(second, one);
  await settleAll(t);
});

test.serial(
  "organizations with a backlog take turns, within the limits per organization and host",
  async (t) => {
    const many = await newOrganization(6);
    const few = await newOrganization(1);
    await atOnce(50, () => createLink(many.id));
    await atOnce(2, () => createLink(few.id));
    const countOf = (leased: LeasedDelivery[], id: string) =>
      leased.filter(({ organizationId }) => organizationId === id).length;
    const turns = [];
    for (let turn = 0; turn < 2; turn++)
      turns.push(...(await second.deliveries.lease({ ...LEASE_LIMITS, max: 1 })));
    t.is(countOf(turns, few.id), 1, "one of each organization, although the other has six webhooks");
    const one = await first.deliveries.lease({ ...LEASE_LIMITS, max: 20, perOrganization: 8 });
    t.is(countOf(one, many.id), 8);
    t.is(countOf(one, few.id), 1, "created after 300 others");
    const perHost = await second.deliveries.lease({ ...LEASE_LIMITS, perHost: 5 });
    t.is(perHost.length, 5);
    const waiting = await second.deliveries.lease({ ...LEASE_LIMITS, inFlight: new Map([[many.id, 100]]) });
    t.deepEqual(waiting, []);
    for (const leased of [...turns, ...one, ...perHost]) await settle(second, leased);
    await settleAll(t);
  },
);

test.serial(
  "an endpoint that is blocked after failures gets nothing until then, also with a backlog",
  async (t) => {
    const { id, webhooks } = await newOrganization(5);
    const [blocked, slow] = webhooks as [Webhook, Webhook];
    await database
      .knex("webhooks")
      .where({ id: blocked.id })
      .update({ blocked_until: Date.now() + 60_000 });
    await atOnce(50, () => createLink(id));
    const leased = await first.deliveries.lease({
      ...LEASE_LIMITS,
      slow: new Set([slow.id]),
      failing: { ...LEASE_LIMITS.failing, perWebhook: 1 },
    });
    t.is(leased.length, 100);
    t.false(leased.some(({ webhookId }) => webhookId === blocked.id));
    t.is(leased.filter(({ webhookId }) => webhookId === slow.id).length, 1);
    for (const one of leased) await settle(first, one);
    advanceClock(60_000);
    await settleAll(t);
  },
);

test.serial("a failing endpoint gets a test event, or what was resent, before its backlog", async (t) => {
  const { id, webhooks } = await newOrganization();
  const [webhook] = webhooks as [Webhook];
  for (let link = 0; link < 3; link++) await createLink(id);
  const [newest] = await first.webhooks.deliveries(id, webhook.id, 1);
  for (const ask of [
    () => first.webhooks.resend(id, webhook.id, newest?.event.id ?? ""),
    () => first.webhooks.test(id, webhook.id, OPERATOR),
  ]) {
    await database.knex("webhooks").where({ id: webhook.id }).update({ failing_since: 1, failures: 5 });
    const asked = await ask();
    const leased = await first.deliveries.lease({
      ...LEASE_LIMITS,
      failing: { ...LEASE_LIMITS.failing, perWebhook: 1 },
    });
    t.deepEqual(
      leased.map(({ event }) => event.id),
      [asked?.event.id ?? ""],
    );
    for (const one of leased) await settle(first, one);
  }
  await settleAll(t);
});

test.serial("an accepted delivery that took too long makes its endpoint slow until a fast one", async (t) => {
  const { id, webhooks } = await newOrganization(1);
  const slowSince = async () =>
    (
      await database
        .knex("webhooks")
        .where({ id: webhooks[0]?.id ?? "" })
        .first()
    )?.slow_since;
  for (const isSlow of [true, false]) {
    await createLink(id);
    const [leased] = await first.deliveries.lease(LEASE_LIMITS);
    const attempt = { ...ATTEMPT, at: 7 };
    await second.deliveries.settle(leased as LeasedDelivery, attempt, { status: "succeeded", isSlow });
    t.is(await slowSince(), isSlow ? 7 : null);
  }
  await settleAll(t);
});

const DAY_MS = 24 * 60 * 60 * 1000;

test.serial(
  "deliveries over the daily quota wait for the next day, also when processes compete",
  async (t) => {
    const { id, webhooks } = await newOrganization(2);
    const limits = { ...LEASE_LIMITS, limitsOf: () => ({ ...limitsOf("growth"), deliveries_per_day: 7 }) };
    // Each process delivers to one of the webhooks, so neither waits for a row that the other has leased.
    const processes = webhooks.map((busy, index) => ({
      storage: index ? first : second,
      inFlight: new Map([[busy.id, LEASE_LIMITS.perWebhook]]),
    }));
    const today = () => first.webhooks.countDeliveriesToday(id);
    await atOnce(10, () => createLink(id));
    const leaseAll = async () => {
      const leased: LeasedDelivery[] = [];
      for (let round: LeasedDelivery[] | undefined; round?.length !== 0; leased.push(...round)) {
        const found = await Promise.all(
          processes.map(({ storage, inFlight }) => storage.deliveries.lease({ ...limits, inFlight, max: 3 })),
        );
        round = found.flat();
      }
      return leased;
    };
    const failed = { status: "pending", retryAt: 0 } as const;
    const leased = await leaseAll();
    t.is(leased.length, 7);
    t.is(await today(), 7);
    for (const one of leased) await first.deliveries.settle(one, { at: 0, status: 500, ms: 1 }, failed);
    const retried = await first.deliveries.lease(limits);
    t.deepEqual(retried.map(keyOf).sort(), leased.map(keyOf).sort(), "retries are not counted");
    t.is(await today(), 7);
    for (const one of retried) await settle(first, one);
    const entries = await first.audit.list(id, { types: ["webhook.quota_reached"] }, 100);
    t.deepEqual(
      entries.map(({ data }) => data),
      [{ deliveries_per_day: 7 }],
    );

    advanceClock(DAY_MS);
    t.is(await today(), 0);
    const next = await leaseAll();
    t.is(next.length, 7);
    t.is(await today(), 7);
    t.is((await first.audit.list(id, { types: ["webhook.quota_reached"] }, 100)).length, 2, "once per day");
    for (const one of next) await settle(first, one);
    advanceClock(DAY_MS);
    await settleAll(t);
  },
);

test.serial("orphaned deliveries of a deleted webhook are removed and block nothing", async (t) => {
  const { id, webhooks } = await newOrganization(2);
  await atOnce(5, () => createLink(id));
  const [gone, left] = webhooks as [Webhook, Webhook];
  const rows = await database.knex("deliveries").where({ webhook_id: gone.id });
  t.true(await first.webhooks.remove(id, gone.id, OPERATOR));
  // Simulates a link created while the webhook was being deleted.
  await database.knex("deliveries").insert(rows);
  const leased = await second.deliveries.lease(LEASE_LIMITS);
  t.is(leased.length, 5);
  t.true(leased.every(({ webhookId }) => webhookId === left.id));
  t.deepEqual(await database.knex("deliveries").where({ webhook_id: gone.id }), []);
  for (const one of leased) await settle(second, one);
  await settleAll(t);
});

const FAILED = { at: 1, status: 410, ms: 1 };
const GONE = { status: "failed", disable: "The endpoint responded with 410 Gone." } as const;
const LATER = { status: "pending", retryAt: 0, pauseUntil: Date.now() + 1e9 } as const;

for (const outcome of [GONE, LATER]) {
  test.serial(
    `an attempt to deliver to a former URL does not affect the webhook: ${outcome.status}`,
    async (t) => {
      const { id, webhooks } = await newOrganization();
      const webhookId = webhooks[0]?.id as string;
      await createLink(id);
      const [leased] = await first.deliveries.lease(LEASE_LIMITS);
      await second.webhooks.update(id, webhookId, { url: "https://example.com/new" }, OPERATOR);
      await first.deliveries.settle(leased as LeasedDelivery, FAILED, outcome);
      // The newest one is the test event that verifies the new URL.
      const [, delivery] = await second.webhooks.deliveries(id, webhookId, 2);
      t.deepEqual(delivery?.attempts, [FAILED]);
      t.like(await database.knex("webhooks").where({ id: webhookId }).first(), {
        failing_since: null,
        paused_until: null,
        disabled_reason: null,
      });
      await settleAll(t);
    },
  );
}

test.serial("a webhook that recovered during an attempt is not disabled for earlier failures", async (t) => {
  const { id, webhooks } = await newOrganization();
  const webhookId = webhooks[0]?.id as string;
  await database.knex("webhooks").where({ id: webhookId }).update({ failing_since: 1 });
  await createLink(id);
  await createLink(id);
  const [failing, recovered] = await first.deliveries.lease(LEASE_LIMITS);
  await settle(second, recovered as LeasedDelivery);
  const dead = { status: "failed", disable: "All deliveries have failed for days." } as const;
  await first.deliveries.settle(failing as LeasedDelivery, { at: 2, status: 500, ms: 1 }, dead);
  t.like(await second.webhooks.find(id, webhookId), { enabled: true, disabledReason: null });
  await settleAll(t);
});
