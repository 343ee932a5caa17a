import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();

test.after.always(() => storage.close());

const { first, second, database } = storage;

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
  const created = await store.webhooks.create(organizationId, actor, fields, "whsec_AAAA");
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
    const active = database.knex("grants").where({ id: grantId }).whereNull("revoked_at");
    t.is(await active.first(), undefined);
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

// The path is the password, as at Slack and Teams.
const SECRET_PATH = "T024BE7LD-xoCGnpTkCm2qTzSlzXJ1aVQ";
const URL_OF = `https://hooks.example.com/services/${SECRET_PATH}?sig=${SECRET_PATH}`;

async function newOrganization() {
  const { organization } = await first.organizations.create("Stored", "growth", OPERATOR);
  const create = (url: string, storage = first) => {
    const fields = { url, events: ["link.created" as const], enabled: true };
    return storage.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret());
  };
  return { id: organization.id, create };
}

test.serial(
  "neither the database nor the audit log contains the path or query of a webhook's URL",
  async (t) => {
    const { id, create } = await newOrganization();
    const { id: webhookId, url } = (await create(URL_OF)) as Webhook;
    t.is(url, URL_OF);
    await second.webhooks.update(id, webhookId, { events: ["link.deleted"] }, OPERATOR);
    await second.webhooks.rotateSecret(id, webhookId, newWebhookSecret(), 1, OPERATOR);
    await second.webhooks.viewSecret(id, webhookId, OPERATOR);
    t.is((await second.webhooks.find(id, webhookId))?.url, URL_OF);
    const limits = { max: 9, perWebhook: 9, perHost: 9, perOrganization: 9 };
    const failing = { max: 9, perWebhook: 9, perHost: 9, perOrganization: 9 };
    await second.webhooks.test(id, webhookId, OPERATOR);
    const [leased] = await second.deliveries.lease({
      ...limits,
      failing,
      inFlight: new Map(),
      slow: new Set(),
      limitsOf,
    });
    t.is(leased?.url, URL_OF);
    const gone = { status: "failed", disable: "The endpoint responded with 410 Gone." } as const;
    if (leased) await second.deliveries.settle(leased, { at: 0, status: 410, ms: 1 }, gone);
    t.true(
      await second.webhooks.remove(id, ((await create("https://example.com/other")) as Webhook).id, OPERATOR),
    );
    const stored = JSON.stringify([
      await database.knex("webhooks").where({ organization_id: id }),
      await database.knex("events").where({ organization_id: id }),
      await database.knex("deliveries"),
    ]);
    t.false(stored.includes(SECRET_PATH));
    const entries = await first.audit.list(id, {}, 100);
    const urls = entries.map(({ data }) => data.url).filter((shown) => shown !== undefined);
    t.deepEqual([...new Set(urls)].sort(), ["https://example.com/…", "https://hooks.example.com/…"]);
    t.is(urls.length, 7);
  },
);

test.serial(
  "of 20 concurrent webhooks with one URL, exactly one is created, and no other takes its URL",
  async (t) => {
    const { id, create } = await newOrganization();
    const results = await atOnce(20, (index) => create(URL_OF, index % 2 ? first : second));
    t.is(results.filter((result) => "id" in result).length, 1);
    t.is(results.filter((result) => "isDuplicate" in result).length, 19);
    const others = (await atOnce(6, (index) => create(`https://example.com/${index}`))) as Webhook[];
    const taken = await second.webhooks.update(id, others[0]?.id ?? "", { url: URL_OF }, OPERATOR);
    t.deepEqual(taken, { isDuplicate: true });
    const url = "https://example.com/moved";
    const moved = await Promise.all(
      others.map((other, index) =>
        (index % 2 ? first : second).webhooks.update(id, other.id, { url }, OPERATOR),
      ),
    );
    t.is(moved.filter((result) => typeof result === "object" && "id" in result).length, 1);
    t.is(await first.webhooks.count(id), 7);
    const { create: createElsewhere } = await newOrganization();
    t.true("id" in (await createElsewhere(URL_OF)), "another organization may use the same URL");
  },
);

test.serial("a webhook for the same host with a trailing dot is a duplicate", async (t) => {
  const { id, create } = await newOrganization();
  const { url } = (await create("https://dotted.example.com./hook")) as Webhook;
  t.is(url, "https://dotted.example.com./hook", "the URL is kept as it was given");
  for (const same of ["https://dotted.example.com/hook", "https://DOTTED.example.com.:443/hook"])
    t.deepEqual(await create(same), { isDuplicate: true }, same);
  for (const other of ["https://dotted.example.com/hook./", "https://dotted.example.com/other"])
    t.true("id" in (await create(other)), other);
  const hosts = await database.knex("webhooks").where({ organization_id: id }).distinct("host").pluck("host");
  t.deepEqual(hosts, ["dotted.example.com"], "the limit per host is the same, too");
});
