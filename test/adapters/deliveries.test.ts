import test, { type ExecutionContext } from "ava";
import type { Storage } from "../../adapters/index.ts";
import { OPERATOR, SYSTEM } from "../../resources/events.ts";
import { limitsOf } from "../../resources/plans.ts";
import { newWebhookSecret } from "../../resources/webhooks/message.ts";
import type { Leased, Room, Webhook } from "../../resources/webhooks/ports.ts";
import { advanceClock } from "../harness/clock.ts";
import { atOnce, createTestStorage, linkFields } from "../harness/storage.ts";

// Nothing delivers here: the tests lease as processes do.
const { first, second, database, close } = await createTestStorage();
test.after.always(() => close());

const ROOM: Room = {
  most: 100,
  perWebhook: 100,
  failing: { most: 100, perWebhook: 100 },
  underWay: new Map(),
};
const ATTEMPT = { at: 0, status: 204, ms: 1 };
const TAKEOVER_MS = 20_000;
let count = 0;

async function newOrganization(webhooks = 1) {
  const { organization } = await first.organizations.create("Deliveries", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["link.created" as const], enabled: true };
  const made = await atOnce(webhooks, () =>
    first.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret(), limitsOf),
  );
  return { id: organization.id, webhooks: made as Webhook[] };
}

const createLink = (organizationId: string, storage: Storage = first) =>
  storage.links.create(organizationId, OPERATOR, linkFields({ slug: `delivery-${++count}` }));
const keyOf = ({ webhookId, event }: Leased) => `${webhookId} ${event.id}`;
const settle = ({ deliveries }: Storage, leased: Leased) =>
  deliveries.settle(leased, ATTEMPT, { status: "succeeded" }, SYSTEM);

/** Ends whatever another test left. */
async function finish(t: ExecutionContext, storages = [first]) {
  advanceClock(TAKEOVER_MS);
  for (const storage of storages) {
    for (;;) {
      const leased = await storage.deliveries.lease(ROOM);
      if (leased.length === 0) break;
      await Promise.all(leased.map((one) => settle(storage, one)));
    }
  }
  t.deepEqual(await second.deliveries.lease(ROOM), []);
}

test.serial("two processes that look at once never lease the same delivery", async (t) => {
  const { id } = await newOrganization(5);
  const taken: Leased[] = [];
  for (let round = 0; round < 5; round++) {
    await atOnce(20, () => createLink(id));
    let idle = 0;
    while (idle < 3) {
      const found = await Promise.all(
        [first, second, first, second].map(({ deliveries }) => deliveries.lease({ ...ROOM, most: 7 })),
      );
      taken.push(...found.flat());
      idle = found.flat().length === 0 ? idle + 1 : 0;
    }
  }
  t.is(taken.length, 5 * 20 * 5);
  t.is(new Set(taken.map(keyOf)).size, taken.length);
  await Promise.all(taken.map((leased, index) => settle(index % 2 ? first : second, leased)));
  await finish(t);
});

test.serial("what a process that died had leased goes on at another one within 20 s", async (t) => {
  const { id } = await newOrganization();
  await createLink(id);
  const [leased] = await first.deliveries.lease(ROOM);
  if (!leased) return t.fail();
  t.deepEqual(await second.deliveries.lease(ROOM), []);
  advanceClock(15_000);
  t.deepEqual(await second.deliveries.lease(ROOM), [], "an attempt may take so long");
  // A process looks each second.
  advanceClock(TAKEOVER_MS - 15_000 - 1_000);
  const [again] = await second.deliveries.lease(ROOM);
  t.is(again?.event.id, leased.event.id);
  t.is(again?.tries, leased.tries, "nothing is known of the attempt");
  t.not(again?.lease, leased.lease);
  await settle(second, again as Leased);
  await finish(t);
});

test.serial("whoever comes back after its lease has ended changes nothing", async (t) => {
  const { id, webhooks } = await newOrganization();
  await createLink(id);
  const [late] = await first.deliveries.lease(ROOM);
  advanceClock(TAKEOVER_MS);
  const [current] = await second.deliveries.lease(ROOM);
  if (!late || !current) return t.fail();
  const gone = { status: "failed", disable: "The receiver answered 410 Gone." } as const;
  await first.deliveries.settle(late, { at: 0, status: 410, ms: 1 }, gone, SYSTEM);
  await first.deliveries.putOff(late, Date.now() + 1e9);
  t.true((await first.webhooks.find(id, webhooks[0]?.id ?? ""))?.enabled);
  await settle(second, current);
  const [told] = await first.webhooks.deliveries(id, current.webhookId, 1);
  t.like(told, { status: "succeeded", attempts: [ATTEMPT], nextAttemptAt: null });
  await finish(t);
});

test.serial(
  "there is an event and a delivery for every change that is committed, and for no other",
  async (t) => {
    const { id, webhooks } = await newOrganization(2);
    const slugs = await atOnce(30, async (index) => {
      // Half of them want a slug that another one has, in the same batch.
      const slug = index % 2 ? `own-${count}-${index}` : `shared-${count}`;
      const made = await (index % 3 ? first : second).links.create(id, OPERATOR, linkFields({ slug }));
      return "taken" in made ? undefined : slug;
    });
    const made = slugs.filter((slug) => slug !== undefined).sort();
    t.is(made.length, 16);
    for (const webhook of webhooks) {
      const told = await first.webhooks.deliveries(id, webhook.id, 100);
      t.deepEqual(told.map(({ event }) => (event.data as { link: { slug: string } }).link.slug).sort(), made);
    }
    const events = await database.knex("events").where({ organization_id: id, type: "link.created" });
    t.is(events.length, 16);
    await finish(t);
  },
);

test.serial(
  "room is kept: so much of one webhook, less of one that fails, and half for those that do not",
  async (t) => {
    const { id, webhooks } = await newOrganization(3);
    const [fine, weak, dead] = webhooks as [Webhook, Webhook, Webhook];
    await database.knex("webhooks").whereIn("id", [weak.id, dead.id]).update({ failing_since: 1 });
    await atOnce(10, () => createLink(id));
    const leased = await first.deliveries.lease({
      ...ROOM,
      perWebhook: 4,
      failing: { most: 10, perWebhook: 1 },
    });
    const countOf = ({ id: webhookId }: Webhook) =>
      leased.filter((one) => one.webhookId === webhookId).length;
    t.deepEqual([fine, weak, dead].map(countOf), [4, 1, 1]);
    const underWay = new Map([fine, weak, dead].map((webhook) => [webhook.id, countOf(webhook)]));
    const room = { ...ROOM, perWebhook: 4, failing: { most: 8, perWebhook: 1 }, underWay };
    t.deepEqual(await first.deliveries.lease(room), []);
    const others = await second.deliveries.lease({ ...ROOM, failing: { most: 0, perWebhook: 1 } });
    t.deepEqual(new Set(others.map(({ webhookId }) => webhookId)), new Set([fine.id]));
    const some = await second.deliveries.lease({ ...ROOM, most: 3 });
    t.is(some.length, 3);
    for (const one of leased) await settle(first, one);
    for (const one of [...others, ...some]) await settle(second, one);
    await finish(t);
  },
);

test.serial(
  "deliveries of a webhook that was deleted meanwhile are removed, and hold nothing up",
  async (t) => {
    const { id, webhooks } = await newOrganization(2);
    await atOnce(5, () => createLink(id));
    const [gone, left] = webhooks as [Webhook, Webhook];
    const rows = await database.knex("deliveries").where({ webhook_id: gone.id });
    t.true(await first.webhooks.remove(id, gone.id, OPERATOR));
    // As by a link that was made while the webhook was being deleted.
    await database.knex("deliveries").insert(rows);
    const leased = await second.deliveries.lease(ROOM);
    t.is(leased.length, 5);
    t.true(leased.every(({ webhookId }) => webhookId === left.id));
    t.deepEqual(await database.knex("deliveries").where({ webhook_id: gone.id }), []);
    for (const one of leased) await settle(second, one);
    await finish(t);
  },
);

const FAILED = { at: 1, status: 410, ms: 1 };
const GONE = { status: "failed", disable: "The receiver answered 410 Gone." } as const;
const LATER = { status: "pending", retryAt: 0, pauseUntil: Date.now() + 1e9 } as const;

for (const outcome of [GONE, LATER]) {
  test.serial(`an attempt at the former URL leaves the webhook alone: ${outcome.status}`, async (t) => {
    const { id, webhooks } = await newOrganization();
    const webhookId = webhooks[0]?.id as string;
    await createLink(id);
    const [leased] = await first.deliveries.lease(ROOM);
    await second.webhooks.update(id, webhookId, { url: "https://example.com/new" }, OPERATOR);
    await first.deliveries.settle(leased as Leased, FAILED, outcome, SYSTEM);
    const [delivery] = await second.webhooks.deliveries(id, webhookId, 1);
    t.deepEqual(delivery?.attempts, [FAILED]);
    t.like(await database.knex("webhooks").where({ id: webhookId }).first(), {
      failing_since: null,
      paused_until: null,
      disabled_reason: null,
    });
    await finish(t);
  });
}

test.serial(
  "a webhook that recovered during an attempt is not disabled for its failures before",
  async (t) => {
    const { id, webhooks } = await newOrganization();
    const webhookId = webhooks[0]?.id as string;
    await database.knex("webhooks").where({ id: webhookId }).update({ failing_since: 1 });
    await createLink(id);
    await createLink(id);
    const [failing, recovered] = await first.deliveries.lease(ROOM);
    await settle(second, recovered as Leased);
    const dead = { status: "failed", disable: "Nothing has arrived there for days." } as const;
    await first.deliveries.settle(failing as Leased, { at: 2, status: 500, ms: 1 }, dead, SYSTEM);
    t.like(await second.webhooks.find(id, webhookId), { enabled: true, disabledReason: null });
    await finish(t);
  },
);
