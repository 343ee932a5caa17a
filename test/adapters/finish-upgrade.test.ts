import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { limitsOf } from "../../resources/plans.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import type { Webhook } from "../../resources/webhooks/types.ts";
import { advanceClock } from "../harness/clock.ts";
import { createTestStorage, linkFields } from "../harness/database/storage.ts";

// What processes of the previous version write after the migration, which they don't know.
const { first, second, database, close } = await createTestStorage();
const { knex } = database;
test.after.always(() => close());

const DAY_MS = 24 * 60 * 60 * 1000;

const createOrganization = async () =>
  (await first.organizations.create("Upgraded", "growth", OPERATOR)).organization.id;

async function createWebhook(organizationId: string, url: string): Promise<Webhook> {
  const fields = { url, events: ["link.created" as const], enabled: true };
  const created = await first.webhooks.create(organizationId, OPERATOR, fields, newWebhookSecret(), limitsOf);
  return created as Webhook;
}

async function createLinks(organizationId: string, count: number): Promise<string[]> {
  const created = [];
  for (let number = 0; number < count; number++) {
    const slug = `${organizationId.slice(-8)}-${number}`.toLowerCase();
    created.push(await first.links.create(organizationId, OPERATOR, linkFields({ slug })));
  }
  return created.map((link) => ("id" in link ? link.id : ""));
}

test.serial("an expired audit entry is kept for a day after it is chained", async (t) => {
  const id = await createOrganization();
  await knex("events").where({ organization_id: id }).update({ created_at: 1, expires_at: 2 });
  await first.auditChain.append(id);
  await knex("events").where("expires_at", "<=", Date.now()).delete();
  t.like((await first.verifyAuditLogs(id))[0], { ok: true, last_seq: 2 });
});

test.serial("during the upgrade, the previous version can read the URLs of its webhooks", async (t) => {
  const id = await createOrganization();
  const { id: webhookId, url } = await createWebhook(id, "https://example.com/readable");
  await knex("webhooks").where({ id: webhookId }).update({ url });
  await first.migrate();
  await first.finishUpgrade();
  t.is((await knex("webhooks").where({ id: webhookId }).first())?.url, url);
});

test.serial(
  "a day after the migration, what the previous version changed is brought up to date",
  async (t) => {
    const id = await createOrganization();
    const hookUrl = "https://example.com/hook";
    const webhooks = [];
    for (let number = 0; number < 3; number++)
      webhooks.push(await createWebhook(id, `https://example.com/${number}`));
    const [moved, same, empty] = webhooks.map((webhook) => webhook.id) as [string, string, string];
    await knex("webhooks").whereIn("id", [moved, same]).update({ url: hookUrl });
    await knex("webhooks")
      .where({ id: empty })
      .update({ url: "http://other.example/", host: null, url_hash: null });

    const links = await createLinks(id, 4);
    const usage = await first.links.usage(id);
    await knex("organization_usage").where({ organization_id: id }).update({ links: 0, link_bytes: 0 });
    const created = await createOrganization();
    await createLinks(created, 3);
    const createdUsage = await first.links.usage(created);
    await knex("organization_usage").where({ organization_id: created }).delete();
    advanceClock(1);
    const updated_at = Date.now();
    await knex("links")
      .where({ id: links[1] as string })
      .update({ title: "Changed", version: 2, updated_at });

    advanceClock(DAY_MS);
    await Promise.all([first.finishUpgrade(), second.finishUpgrade()]);
    await Promise.all([first.finishUpgrade(), second.finishUpgrade()]);

    const rows = await knex("webhooks").where({ organization_id: id }).orderBy("id");
    t.false(rows.some(({ url }) => url.startsWith("http")));
    t.deepEqual(
      rows.map(({ host }) => host),
      ["example.com", "example.com", "other.example"],
    );
    t.is(new Set(rows.map(({ url_hash }) => url_hash)).size, 3);
    t.is((await first.webhooks.find(id, moved))?.url, hookUrl);
    t.is((await first.webhooks.find(id, same))?.url, hookUrl);
    t.deepEqual(await first.webhooks.update(id, empty, { url: hookUrl }, OPERATOR), { isDuplicate: true });
    t.deepEqual(await first.links.usage(id), { ...usage, link_bytes: usage.link_bytes + "Changed".length });
    t.deepEqual(await first.links.usage(created), createdUsage);
    const changed = await knex("link_search_changes")
      .where({ link_id: links[1] as string })
      .first();
    t.is(changed?.version, 2);
  },
);

test.serial("an upgrade is finished once", async (t) => {
  const id = await createOrganization();
  await createLinks(id, 1);
  await knex("organization_usage").where({ organization_id: id }).update({ links: 0 });
  await first.finishUpgrade();
  await second.finishUpgrade();
  t.is((await first.links.usage(id)).links, 0);
});
