import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const APP = "lgc_app";
const ROUNDS = 10;
let count = 0;

/** Creates an organization with an owner, and an admin who authorized an app. */
async function createGrant() {
  const { organization } = await first.organizations.create("Team", "growth", OPERATOR);
  const users = [];
  for (const role of ["owner", "admin"] as const) {
    const membership = { organizationId: organization.id, role };
    users.push((await first.accounts.create(`user${++count}`, "a hash", OPERATOR, membership))?.id as string);
  }
  const [owner, admin] = users as [string, string];
  return { id: organization.id, owner, admin, grantId: await createGrantOf(organization.id, admin) };
}

/** Stores the user's authorization of the app. */
async function createGrantOf(organizationId: string, userId: string): Promise<string> {
  const grantId = `grant-${++count}`;
  const grant = { clientId: APP, accountId: userId, organizationId };
  await first.oidcAdapter("Grant").upsert(grantId, { ...grant, exp: Date.now() / 1000 + 600 }, 600);
  return grantId;
}

/** Creates a webhook that subscribes to revocations, as the app does for the user. */
async function createWebhook(store: typeof first, organizationId: string, userId: string): Promise<string> {
  return (await createUnlessRevoked(store, organizationId, userId))[0] as string;
}

/** Does the same, unless the user no longer authorizes the app. */
async function createUnlessRevoked(
  store: typeof first,
  organizationId: string,
  userId: string,
): Promise<string[]> {
  const fields = {
    url: `https://example.com/${++count}`,
    events: ["authorization.revoked" as const],
    enabled: true,
  };
  const actor = { id: userId, via: APP };
  const created = await store.webhooks.create(organizationId, actor, fields, "whsec_AAAA", limitsOf);
  return "isRevoked" in created ? [] : [(created as { id: string }).id];
}

test("concurrent revocations and removals delete each webhook exactly once", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { id, owner, admin, grantId } = await createGrant();
    await createGrantOf(id, owner);
    const before = [await createWebhook(first, id, admin), await createWebhook(first, id, admin)];
    const byOwner = await createWebhook(first, id, owner);
    const actor = { id: owner };
    const member = { organizationId: id, userId: admin, manageableRoles: ["admin"] as const, actor };
    const [revoked, removed, refusal, ...created] = await Promise.all([
      first.grants.revoke(id, grantId, actor, { deletesWebhooks: true }),
      second.webhooks.remove(id, before[0] as string, actor),
      second.members.remove({ ...member, deletesWebhooks: true }),
      createUnlessRevoked(second, id, admin),
      createUnlessRevoked(first, id, owner),
    ]);
    t.is(refusal, undefined);
    t.is(typeof revoked, "boolean");
    t.is(typeof removed, "boolean");
    const left = (await first.webhooks.list(id, 100)).map((webhook) => webhook.id);
    t.true(left.includes(byOwner));
    t.false(before.some((one) => left.includes(one)));
    const byAdmin = left.filter((one) => created[0]?.includes(one));
    t.deepEqual(byAdmin, [], `round ${round}: the app created one after it had lost access`);
    const deletions = await database.knex("events").where({ organization_id: id, type: "webhook.deleted" });
    const deleted = deletions.map(({ subject }) => subject);
    t.deepEqual(
      [...deleted, ...left].sort(),
      [...before, byOwner, ...created.flat()].sort(),
      `round ${round}`,
    );
    t.is(await first.grants.findStatus(grantId), undefined);
  }
});

test("of webhooks that an app creates during the revocation that deletes them, none remains", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { id, admin, grantId } = await createGrant();
    await Promise.all([
      first.grants.revoke(id, grantId, { id: admin }, { deletesWebhooks: true }),
      ...Array.from({ length: 4 }, () => createUnlessRevoked(second, id, admin)),
    ]);
    t.deepEqual(await first.webhooks.list(id, 100), [], `round ${round}`);
  }
});

test("a deleted webhook doesn't receive the event of the revocation that deleted it", async (t) => {
  const { id, admin, grantId } = await createGrant();
  const webhookId = await createWebhook(first, id, admin);
  t.true(await first.grants.revoke(id, grantId, { id: admin }, { deletesWebhooks: true }));
  t.deepEqual(await database.knex("deliveries").where({ webhook_id: webhookId }), []);
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
  await database.knex("webhooks").where({ id: damaged }).update({ url: "v1.damaged" });
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
