import test from "ava";
import type { Database } from "../../adapters/database.ts";
import { sha256 } from "../../adapters/hash.ts";
import { newId } from "../../adapters/id.ts";
import { migrations, steps } from "../../adapters/migrations/index.ts";
import { ask } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";
import { createTestStorage } from "../harness/storage.ts";

const DROP = "0003_drop_client_document";
const BEFORE = steps.slice(
  0,
  steps.findIndex(({ name }) => name === DROP),
);

/** Brings an empty database to the schema in which a client was stored a second time, as one text. */
async function migrateToDocuments({ knex, engine }: Database): Promise<void> {
  const migrationSource = { ...migrations(engine), getMigrations: async () => BEFORE };
  await knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
}

/** Stores a client as that schema had it; the document names a secret that is not the client's. */
async function insertClient({ knex }: Database) {
  const [id, clientId, secretId] = [newId("org"), `lgc_${"c".repeat(22)}`, newId("sec")];
  const clientSecret = `lgs_${"s".repeat(43)}`;
  const at = { created_at: Date.now(), updated_at: Date.now() };
  const organization = { id, name: "Before", plan: "growth" };
  await knex("organizations").insert({ ...organization, ...at });
  const stale = { id: secretId, hash: sha256("lgs_stale"), expiresAt: null };
  await knex("clients").insert({
    id: clientId,
    organization_id: id,
    redirect_uris: '["https://app.example.com/callback"]',
    document: JSON.stringify({
      id: clientId,
      organization,
      redirectUris: [],
      generation: 0,
      secrets: [stale],
    }),
    generation: 0,
    ...at,
  });
  await knex("client_secrets").insert({
    id: secretId,
    client_id: clientId,
    hash: sha256(clientSecret),
    last4: clientSecret.slice(-4),
    created_at: at.created_at,
  });
  return { id, name: "Before", clientId, clientSecret };
}

test("a client from before the upgrade authenticates with the secret in its row, and not by its old document", async (t) => {
  const { url, database, encryptionKey, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await migrateToDocuments(database);
  const app = await insertClient(database);
  const service = await startTestService({
    DATABASE_URL: url,
    ENCRYPTION_KEY: encryptionKey.toString("base64url"),
  });
  t.teardown(() => service.close());
  t.truthy(await service.token(app));
  const stale = await ask(
    service,
    "token",
    { ...app, clientSecret: "lgs_stale" },
    { grant_type: "client_credentials" },
  );
  t.is(stale.body.error, "invalid_client");
  t.deepEqual((await service.storage.clients.find(app.clientId))?.redirectUris, [
    "https://app.example.com/callback",
  ]);
});

test("the upgrade keeps what ties a client to its organization and its secrets", async (t) => {
  const { database, first, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await migrateToDocuments(database);
  const { clientId } = await insertClient(database);
  t.true((await first.migrate()).includes(DROP));
  t.false(await database.knex.schema.hasColumn("clients", "document"));
  const at = { created_at: 0, updated_at: 0 };
  const orphan = { id: "lgc_orphan", organization_id: "org_nobody", redirect_uris: "[]", ...at };
  await t.throwsAsync(database.knex("clients").insert(orphan));
  await database.knex("clients").where({ id: clientId }).delete();
  t.deepEqual(await database.knex("client_secrets"), []);
});

test("an upgrade that ended after the column was dropped is completed by the next one", async (t) => {
  const { database, first, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await migrateToDocuments(database);
  await insertClient(database);
  await database.knex.raw("alter table clients drop column document");
  t.true((await first.migrate()).includes(DROP));
  t.deepEqual(await first.pendingMigrations(), []);
});
