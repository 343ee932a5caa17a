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
  const grantId = `grant-${++count}`;
  const grant = { clientId: APP, accountId: admin, organizationId: organization.id };
  await first.oidcAdapter("Grant").upsert(grantId, { ...grant, exp: Date.now() / 1000 + 600 }, 600);
  return { id: organization.id, owner, admin, grantId };
}

/** Creates a webhook that subscribes to revocations, as the app does for the user. */
async function createWebhook(store: typeof first, organizationId: string, userId: string): Promise<string> {
  const fields = {
    url: `https://example.com/${++count}`,
    events: ["authorization.revoked" as const],
    enabled: true,
  };
  const actor = { id: userId, via: APP };
  const created = await store.webhooks.create(organizationId, actor, fields, "whsec_AAAA", limitsOf);
  return (created as { id: string }).id;
}

test("concurrent revocations and removals delete each webhook exactly once", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { id, owner, admin, grantId } = await createGrant();
    const before = [await createWebhook(first, id, admin), await createWebhook(first, id, admin)];
    const byOwner = await createWebhook(first, id, owner);
    const actor = { id: owner };
    const member = { organizationId: id, userId: admin, manageableRoles: ["admin"] as const, actor };
    const [revoked, removed, refusal, ...created] = await Promise.all([
      first.grants.revoke(id, grantId, actor, { deletesWebhooks: true }),
      second.webhooks.remove(id, before[0] as string, actor),
      second.members.remove({ ...member, deletesWebhooks: true }),
      createWebhook(second, id, admin),
      createWebhook(first, id, owner),
    ]);
    t.is(refusal, undefined);
    t.is(typeof revoked, "boolean");
    t.is(typeof removed, "boolean");
    const left = (await first.webhooks.list(id, 100)).map((webhook) => webhook.id);
    t.true(left.includes(byOwner));
    t.false(before.some((one) => left.includes(one)));
    const deletions = await database.knex("events").where({ organization_id: id, type: "webhook.deleted" });
    const deleted = deletions.map(({ subject }) => subject);
    t.deepEqual([...deleted, ...left].sort(), [...before, byOwner, ...created].sort(), `round ${round}`);
    t.is(await first.grants.findStatus(grantId), undefined);
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
  await first.grants.revoke(id, grantId, { id: admin });
  const webhookId = await createWebhook(first, id, admin);
  t.false(await first.grants.revoke(id, grantId, { id: admin }, { deletesWebhooks: true }));
  t.truthy(await first.webhooks.find(id, webhookId));
});

test("a refused removal deletes nothing", async (t) => {
  const { id, owner } = await createGrant();
  const webhookId = await createWebhook(first, id, owner);
  const member = { organizationId: id, userId: owner, manageableRoles: ["owner"] as const };
  const actor = { id: owner };
  t.is(await first.members.remove({ ...member, actor, deletesWebhooks: true }), "last_owner");
  t.truthy(await first.webhooks.find(id, webhookId));
});
