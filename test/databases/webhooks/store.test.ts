import test from "ava";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { LeasedDelivery, Webhook } from "../../../resources/webhooks/types.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";
import { createWebhooks, settle } from "../../harness/database/webhooks.ts";
import { LEASE_LIMITS } from "../../harness/webhooks.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, knex, createOrganization, createUser } = storage;

const APP = "lgc_app";
const ROUNDS = 5;
let count = 0;

async function createGrant() {
  const id = await createOrganization();
  const owner = await createUser(id, "owner");
  const admin = await createUser(id, "admin");
  return { id, owner, admin, grantId: await createGrantOf(id, admin) };
}

async function createGrantOf(organizationId: string, userId: string): Promise<string> {
  const grantId = `grant-${++count}`;
  const grant = { clientId: APP, accountId: userId, organizationId };
  await first.oidcAdapter("Grant").upsert(grantId, { ...grant, exp: Date.now() / 1000 + 600 }, 600);
  return grantId;
}

/** Creates a webhook as the app does for the user, unless the app is no longer authorized. */
async function createUnlessRevoked(by: typeof first, organizationId: string, userId: string) {
  const url = `https://example.com/${++count}`;
  const fields = { url, events: ["authorization.revoked" as const], enabled: true };
  const actor = { id: userId, via: APP };
  const created = await by.webhooks.create(organizationId, actor, fields, newWebhookSecret());
  return "isRevoked" in created ? [] : [(created as Webhook).id];
}

async function createWebhook(by: typeof first, organizationId: string, userId: string): Promise<string> {
  return (await createUnlessRevoked(by, organizationId, userId))[0] as string;
}

test("concurrent revocations and removals delete each webhook exactly once", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { id, owner, admin, grantId } = await createGrant();
    await createGrantOf(id, owner);
    const before = [await createWebhook(first, id, admin), await createWebhook(first, id, admin)];
    const byOwner = await createWebhook(first, id, owner);
    const actor = { id: owner };
    const member = { organizationId: id, userId: admin, manageableRoles: ["admin"] as const, actor };
    const [, , refusal, ...created] = await Promise.all([
      first.grants.revoke(id, grantId, actor, { deletesWebhooks: true }),
      second.webhooks.remove(id, before[0] as string, actor),
      second.members.remove({ ...member, deletesWebhooks: true }),
      createUnlessRevoked(second, id, admin),
      createUnlessRevoked(first, id, owner),
    ]);
    t.is(refusal, undefined);
    const left = (await first.webhooks.list(id, 100)).map((webhook) => webhook.id);
    t.true(left.includes(byOwner));
    t.false(before.some((one) => left.includes(one)));
    const byAdmin = left.filter((one) => created[0]?.includes(one));
    t.deepEqual(byAdmin, [], `round ${round}: the app created one after it had lost access`);
    const deletions = await knex("events").where({ organization_id: id, type: "webhook.deleted" });
    const deleted = deletions.map(({ subject }) => subject);
    const all = [...before, byOwner, ...created.flat()];
    t.deepEqual([...deleted, ...left].sort(), all.sort(), `round ${round}`);
    const active = knex("grants").where({ id: grantId }).whereNull("revoked_at");
    t.is(await active.first(), undefined);
  }
});

test("a deleted webhook doesn't receive the event of the revocation that deleted it", async (t) => {
  const { id, admin, grantId } = await createGrant();
  const webhookId = await createWebhook(first, id, admin);
  t.true(await first.grants.revoke(id, grantId, { id: admin }, { deletesWebhooks: true }));
  t.deepEqual(await knex("deliveries").where({ webhook_id: webhookId }), []);
});

test("a grant that was revoked before deletes nothing", async (t) => {
  const { id, admin, grantId } = await createGrant();
  const webhookId = await createWebhook(first, id, admin);
  await first.grants.revoke(id, grantId, { id: admin });
  t.false(await first.grants.revoke(id, grantId, { id: admin }, { deletesWebhooks: true }));
  t.truthy(await first.webhooks.find(id, webhookId));
});

test("an app whose request began before the revocation creates no webhook after it", async (t) => {
  const { id, admin, grantId } = await createGrant();
  const other = await createGrantOf(id, admin);
  await first.grants.revoke(id, grantId, { id: admin }, { deletesWebhooks: true });
  t.truthy(await createWebhook(second, id, admin), "the other authorization still allows it");
  await first.grants.revoke(id, other, { id: admin }, { deletesWebhooks: true });
  t.deepEqual(await createUnlessRevoked(second, id, admin), []);
  t.deepEqual(await first.webhooks.list(id, 100), []);
});

test("a webhook whose URL can't be decrypted is deleted, and its audit log entry has no URL", async (t) => {
  const { id, owner, admin, grantId } = await createGrant();
  const damaged = await createWebhook(first, id, admin);
  const intact = await createWebhook(first, id, admin);
  await knex("webhooks").where({ id: damaged }).update({ url: "v1.damaged" });
  t.true(await first.grants.revoke(id, grantId, { id: owner }, { deletesWebhooks: true }));
  t.is(await first.webhooks.count(id), 0);
  const deleted = await first.audit.list(id, { types: ["webhook.deleted"] }, 10);
  const urls = Object.fromEntries(deleted.map(({ subject, data }) => [subject, data.url]));
  t.deepEqual(urls, { [intact]: "https://example.com/…", [damaged]: undefined });
  t.true(deleted.every(({ data }) => Array.isArray(data.events)));
});

test("a refused removal deletes nothing", async (t) => {
  const { id, owner } = await createGrant();
  await createGrantOf(id, owner);
  const webhookId = await createWebhook(first, id, owner);
  const member = { organizationId: id, userId: owner, manageableRoles: ["owner"] as const };
  const actor = { id: owner };
  t.is(await first.members.remove({ ...member, actor, deletesWebhooks: true }), "last_owner");
  t.truthy(await first.webhooks.find(id, webhookId));
});

// The path is the password, as at Slack and Teams.
const SECRET_PATH = "T024BE7LD-xoCGnpTkCm2qTzSlzXJ1aVQ";
const URL_OF = `https://hooks.example.com/services/${SECRET_PATH}?sig=${SECRET_PATH}`;

async function newOrganization() {
  const id = await createOrganization();
  const create = (url: string, by = first) => {
    const fields = { url, events: ["link.created" as const], enabled: true };
    return by.webhooks.create(id, OPERATOR, fields, newWebhookSecret());
  };
  return { id, create };
}

test.serial("neither the database nor the audit log has the path or query of a webhook's URL", async (t) => {
  const { id, create } = await newOrganization();
  const { id: webhookId, url } = (await create(URL_OF)) as Webhook;
  t.is(url, URL_OF);
  await second.webhooks.update(id, webhookId, { events: ["link.deleted"] }, OPERATOR);
  await second.webhooks.rotateSecret(id, webhookId, newWebhookSecret(), 1, OPERATOR);
  await second.webhooks.viewSecret(id, webhookId, OPERATOR);
  t.is((await second.webhooks.find(id, webhookId))?.url, URL_OF);
  await second.webhooks.test(id, webhookId, OPERATOR);
  const [leased] = await second.deliveries.lease(LEASE_LIMITS);
  t.is(leased?.url, URL_OF);
  const gone = { status: "failed", disable: "The endpoint responded with 410 Gone." } as const;
  if (leased) await second.deliveries.settle(leased, { at: 0, status: 410, ms: 1 }, gone);
  const other = (await create("https://example.com/other")) as Webhook;
  t.true(await second.webhooks.remove(id, other.id, OPERATOR));
  const stored = JSON.stringify([
    await knex("webhooks").where({ organization_id: id }),
    await knex("events").where({ organization_id: id }),
    await knex("deliveries"),
  ]);
  t.false(stored.includes(SECRET_PATH));
  const entries = await first.audit.list(id, {}, 100);
  const urls = entries.map(({ data }) => data.url).filter((shown) => shown !== undefined);
  t.deepEqual([...new Set(urls)].sort(), ["https://example.com/…", "https://hooks.example.com/…"]);
  t.is(urls.length, 7);
});

test.serial("of 20 concurrent webhooks with one URL, one is created, and none moves to it", async (t) => {
  const { id, create } = await newOrganization();
  const results = await atOnce(20, (index) => create(URL_OF, either(index)));
  t.is(results.filter((result) => "id" in result).length, 1);
  t.is(results.filter((result) => "isDuplicate" in result).length, 19);
  const others = (await atOnce(6, (index) => create(`https://example.com/${index}`))) as Webhook[];
  const taken = await second.webhooks.update(id, others[0]?.id ?? "", { url: URL_OF }, OPERATOR);
  t.deepEqual(taken, { isDuplicate: true });
  const url = "https://example.com/moved";
  const move = (index: number) =>
    either(index).webhooks.update(id, others[index]?.id ?? "", { url }, OPERATOR);
  const moved = await atOnce(6, move);
  t.is(moved.filter((result) => typeof result === "object" && "id" in result).length, 1);
  t.is(await first.webhooks.count(id), 7);
  const { create: createElsewhere } = await newOrganization();
  t.true("id" in (await createElsewhere(URL_OF)), "another organization may use the same URL");
});

test.serial("a webhook for the same host with a trailing dot is a duplicate", async (t) => {
  const { id, create } = await newOrganization();
  const { url } = (await create("https://dotted.example.com./hook")) as Webhook;
  t.is(url, "https://dotted.example.com./hook", "the URL is kept as it was given");
  for (const same of ["https://dotted.example.com/hook", "https://DOTTED.example.com.:443/hook"])
    t.deepEqual(await create(same), { isDuplicate: true }, same);
  for (const other of ["https://dotted.example.com/hook./", "https://dotted.example.com/other"])
    t.true("id" in (await create(other)), other);
  const hosts = await knex("webhooks").where({ organization_id: id }).distinct("host").pluck("host");
  t.deepEqual(hosts, ["dotted.example.com"], "the limit per host is the same, too");
});

test("of concurrent creations in two processes, as many succeed as the plan allows", async (t) => {
  const { create } = await newOrganization();
  const created = await atOnce(30, (index) => create(`https://example.com/${index}`, either(index)));
  t.is(created.filter((one) => "id" in one).length, 20);
});

const change = ({ id }: Webhook, values: object) => knex("webhooks").where({ id }).update(values);

test.serial("the health of a webhook counts its newest deliveries, and names the next attempt", async (t) => {
  const { id, webhook } = await createWebhooks(storage);
  const healthOf = async ({ since = 0, max = 100 } = {}) =>
    (await first.webhooks.health(id, since, max)).get(webhook.id);
  for (let link = 0; link < 3; link++) await storage.createLink(id);
  const leased = (await first.deliveries.lease(LEASE_LIMITS)).filter((one) => one.organizationId === id);
  const [one, two, three] = leased as [LeasedDelivery, LeasedDelivery, LeasedDelivery];
  const [dueAt, failed] = [Date.now() + 60_000, { at: Date.now(), status: 500, ms: 1 }];
  await settle(first, one);
  await settle(first, two, { status: "failed" }, failed);
  await settle(first, three, { status: "pending", retryAt: dueAt }, failed);
  const counts = { succeeded: 1, failed: 1, pending: 1 };
  t.like(await healthOf(), { counts, nextAttemptAt: dueAt, failures: 2 });
  t.deepEqual((await healthOf({ max: 1 }))?.counts, { succeeded: 0, failed: 0, pending: 1 });
  const later = await healthOf({ since: Date.now() + 1000 });
  t.deepEqual(later?.counts, { succeeded: 0, failed: 0, pending: 0 });

  await change(webhook, { blocked_until: dueAt + 1 });
  t.is((await healthOf())?.nextAttemptAt, dueAt + 1, "after the block");
  await change(webhook, { paused_until: dueAt + 2 });
  t.is((await healthOf())?.nextAttemptAt, dueAt + 2, "after the pause");
});

test.serial("only enabled webhooks of the organization are counted as failing", async (t) => {
  const { id, webhook } = await createWebhooks(storage, 2);
  const other = await createWebhooks(storage);
  const counts = () => Promise.all([id, other.id].map((one) => first.webhooks.countFailing(one)));
  t.deepEqual(await counts(), [0, 0]);
  await change(webhook, { failing_since: 1 });
  t.deepEqual(await counts(), [1, 0]);
  await first.webhooks.update(id, webhook.id, { enabled: false }, OPERATOR);
  t.deepEqual(await counts(), [0, 0]);
});
