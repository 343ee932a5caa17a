import test from "ava";
import { sha256 } from "../../adapters/crypto/ids.ts";
import { advanceClock, now } from "../harness/clock.ts";
import { createTestStorage, OPERATOR } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";

export const databases = "all";

const { first, second, knex, createOrganization, createUser, createWebhook } = await createTestStorage();

const TABLES = `tokens sessions interactions one_time_links notices mails grants client_secrets client_secret_uses
  invitations known_devices sign_in_failures idempotency_keys deliveries events click_counts click_details click_sources`;
const NOTHING: object = Object.fromEntries(TABLES.split(/\s+/).map((table) => [table, 0]));

function expiredTokens(count: number) {
  return Array.from({ length: count }, (_, index) => ({
    id_hash: sha256(`expired ${index}`),
    kind: "AccessToken",
    payload: "{}",
    expires_at: Date.now() - 1000,
  }));
}

const insertExpired = (count: number) => knex.batchInsert("tokens", expiredTokens(count), 500);

test.serial("expired rows of every table are deleted, and no others", async (t) => {
  const [organizationId, userId] = [await createOrganization(), await createUser()];
  for (const lifetime of [60, 600]) {
    const exp = now() + lifetime;
    const upsert = async (model: string, payload: { accountId?: string; [name: string]: unknown }) =>
      first.oidcAdapter(model).upsert(`${model}-${lifetime}`, payload, lifetime);
    await upsert("AccessToken", { exp });
    await upsert("Session", { uid: `uid-${lifetime}`, accountId: userId });
    await upsert("Interaction", {});
    await upsert("Grant", { clientId: "lgc_a", accountId: userId, exp });
  }
  const short = await first.accounts.createResetToken(userId, 60_000);
  const long = await first.accounts.createResetToken(userId, 600_000);
  await first.clients.rotateSecret(organizationId, { overlapMs: 60_000, compromised: false }, OPERATOR);
  advanceClock(61_000);

  const ofUser = { tokens: 1, sessions: 1, interactions: 1, one_time_links: 1, grants: 1 };
  t.deepEqual<unknown, unknown>(await second.purgeExpired(), { ...NOTHING, ...ofUser, client_secrets: 1 });
  for (const model of ["AccessToken", "Session", "Interaction", "Grant"]) {
    t.is(await first.oidcAdapter(model).find(`${model}-60`), undefined, model);
    t.truthy(await first.oidcAdapter(model).find(`${model}-600`), model);
  }
  t.is(await first.accounts.findByResetToken(short), undefined);
  t.is((await first.accounts.findByResetToken(long))?.id, userId);
  t.is((await first.clients.findByOrganization(organizationId))?.secrets.length, 1);
  t.deepEqual(await second.purgeExpired(), NOTHING);
});

test.serial("a used code is kept as long as its grant, so a replay is detected", async (t) => {
  const grant = { clientId: "lgc_a", accountId: "usr_a", exp: now() + 3600 };
  await first.oidcAdapter("Grant").upsert("family", grant, 3600);
  const codes = [first, second].map((process) => process.oidcAdapter("AuthorizationCode"));
  const code = { clientId: "lgc_a", grantId: "family", exp: now() + 60 };
  for (const id of ["used", "unused"]) await codes[0]?.upsert(id, code, 60);
  await codes[0]?.consume("used");
  advanceClock(3_000_000);
  await first.purgeExpired();
  t.true((await codes[1]?.find("used"))?.consumed);
  t.is(await codes[1]?.find("unused"), undefined);
  advanceClock(700_000);
  await first.purgeExpired();
  t.is(await codes[1]?.find("used"), undefined);
  t.is((await knex("tokens").where({ grant_id: "family" })).length, 0);
});

test.serial("expired deliveries and their events are deleted, and the audit log is kept", async (t) => {
  const organizationId = await createOrganization();
  const webhook = await createWebhook(organizationId);
  // Besides the one that verifies the webhook.
  await first.webhooks.test(organizationId, webhook.id, OPERATOR);
  await knex("deliveries").decrement("expires_at", 31 * 24 * 3_600_000);
  await knex("events").where({ type: "webhook.test" }).update({ expires_at: Date.now() });
  t.deepEqual(await second.purgeExpired(), { ...NOTHING, deliveries: 2, events: 2 });
  t.is((await knex("events").where({ organization_id: organizationId })).length, 3);
});

test.serial("rows are deleted in batches of at most 100", async (t) => {
  await insertExpired(1700);
  const deletes: string[] = [];
  const stop = first.onStatement((sql) => /^delete from .tokens/.test(sql) && deletes.push(sql));
  t.is((await first.purgeExpired())?.tokens, 1700);
  stop();
  t.is(deletes.length, 17);
  t.is((await knex("tokens").where("expires_at", "<", Date.now())).length, 0);
});

test.serial("the lease of a process that died blocks the others until it expires", async (t) => {
  await knex("leases").insert({ name: "sweep", holder: "it died", expires_at: Date.now() + 30_000 });
  t.is(await first.purgeExpired(), undefined);
  advanceClock(29_000);
  t.is(await second.purgeExpired(), undefined);
  advanceClock(2000);
  await insertExpired(1200);
  const answers = await Promise.all([first.purgeExpired(), second.purgeExpired()]);
  t.is(answers.filter((answer) => answer === undefined).length, 1);
  t.deepEqual(await knex("leases"), []);
});

// SQLite has one writer at a time, so a test cannot change a row between the SELECT and the DELETE there.
if (engine !== "sqlite")
  test.serial("PostgreSQL, MariaDB: a row renewed during the purge is kept", async (t) => {
    const rows = expiredTokens(1);
    await knex("tokens").insert(rows);
    const deleting = Promise.withResolvers<void>();
    const stop = first.onStatement((sql) => /^delete from .tokens/.test(sql) && deleting.resolve());
    const renewal = await knex.transaction();
    await renewal("tokens").update({ expires_at: Date.now() + 60_000 });
    const purged = first.purgeExpired();
    await deleting.promise;
    await renewal.commit();
    t.is((await purged)?.tokens, 0);
    stop();
    t.is((await knex("tokens").where({ id_hash: rows[0]?.id_hash as string })).length, 1);
  });
