import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import type { Engine } from "../../../adapters/database/engine.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS, migrations } from "../../../adapters/database/migrations/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR, SYSTEM } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { LEASE_LIMITS, markVerified } from "../../harness/webhooks.ts";

export const databases = "all";

/** Creates an organization with a verified webhook. */
async function createWebhook(t: ExecutionContext) {
  const { first, database, close } = await createTestStorage();
  t.teardown(close);
  const { organization } = await first.organizations.create("Busy", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["link.created" as const], enabled: true };
  const created = await first.webhooks.create(
    organization.id,
    OPERATOR,
    fields,
    newWebhookSecret(),
    limitsOf,
  );
  const { id } = created as Webhook;
  await markVerified(database, [id]);
  return { first, database, organization, id };
}

test("a migration gives existing deliveries the types of their events", async (t) => {
  const { url, drop } = await createTestDatabase({ empty: true });
  const { knex, migrate, close } = openDatabase(url);
  const storage = openStorage(url, randomBytes(32));
  t.teardown(() => Promise.all([storage.close(), close()]).then(drop));
  const before = MIGRATIONS.slice(
    0,
    MIGRATIONS.findIndex(({ name }) => name === "0011_delivery_log"),
  );
  const migrationSource = migrations(engine as Engine, before);
  await knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });

  const organization = { id: "org_1", name: "Before", plan: "growth" as const };
  await knex("organizations").insert({ ...organization, created_at: 1, updated_at: 1 } as never);
  const times = { created_at: 1, expires_at: Date.now() + 60_000 };
  const webhook = {
    ...{ id: "whk_1", organization_id: organization.id, url: "x", host: "x", url_hash: "x", secret: "x" },
    ...{ events: "link.created", enabled: true, created_by: "x", created_at: 1, updated_at: 1 },
  };
  await knex("webhooks").insert(webhook as never);
  const rows = (["link.created", "link.updated", "link.created"] as const).map((type, index) => ({
    type,
    id: `evt_${index}`,
  }));
  for (const { id, type } of rows) {
    const event = { id, organization_id: organization.id, audited: false, type, actor: "x", data: "{}" };
    await knex("events").insert({ ...event, ...times });
    const delivery = { webhook_id: "whk_1", event_id: id, status: "failed" as const, log: "[]", ...times };
    await knex("deliveries").insert(delivery);
  }
  t.deepEqual((await migrate()).at(0), "0011_delivery_log");
  const created = await storage.webhooks.deliveries(organization.id, "whk_1", 10, undefined, {
    type: "link.created",
  });
  t.deepEqual(
    created.map(({ event }) => event.id),
    ["evt_2", "evt_0"],
  );
  t.like(await storage.webhooks.findDelivery(organization.id, "whk_1", "evt_0"), { exchange: null });
  t.is(await storage.webhooks.resendFailed(organization.id, "whk_1", 100), 3);
});

test("the last success is stored once a minute while deliveries succeed", async (t) => {
  const { first, organization, id } = await createWebhook(t);
  const deliver = async (slug: string) => {
    await first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    for (const leased of await first.deliveries.lease(LEASE_LIMITS))
      await first.deliveries.settle(
        leased,
        { at: Date.now(), status: 204, ms: 1 },
        { status: "succeeded" },
        SYSTEM,
      );
    return (await first.webhooks.find(organization.id, id))?.lastSuccessAt ?? 0;
  };
  const one = await deliver("success-1");
  t.true(one > 0);
  advanceClock(30_000);
  t.is(await deliver("success-2"), one);
  advanceClock(31_000);
  t.true((await deliver("success-3")) >= one + 61_000);
});

test("a resend has a limit, and the rest is counted", async (t) => {
  const { first, database, organization, id } = await createWebhook(t);
  for (let count = 0; count < 12; count++)
    await first.links.create(organization.id, OPERATOR, linkFields({ slug: `lost-${count}` }));
  await database.knex("deliveries").update({ status: "failed", due_at: null });
  t.is(await first.webhooks.countFailed(organization.id, id, 5), 5);
  t.is(await first.webhooks.resendFailed(organization.id, id, 5), 5);
  t.is(await first.webhooks.countFailed(organization.id, id, 100), 7);
  t.is(await first.webhooks.resendFailed("org_other", id, 100), 0);
  t.is(await first.webhooks.countFailed("org_other", id, 100), 0);
  t.is((await first.deliveries.lease(LEASE_LIMITS)).length, 5);
});
