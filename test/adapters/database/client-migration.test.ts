import test from "ava";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { newId } from "../../../adapters/crypto/ids.ts";
import type { Database } from "../../../adapters/database/index.ts";
import { MIGRATIONS, migrations } from "../../../adapters/database/migrations/index.ts";
import { postAsClient } from "../../harness/clients/oauth.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

const DROP = "0003_drop_client_document";
const BEFORE = MIGRATIONS.slice(
  0,
  MIGRATIONS.findIndex(({ name }) => name === DROP),
);

/** Migrates an empty database to the schema in which each client had a denormalized copy, its document. */
async function migrateToDocuments({ knex, engine }: Database): Promise<void> {
  const migrationSource = { ...migrations(engine), getMigrations: async () => BEFORE };
  await knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
}

/** Stores a client in that schema. Its document contains a secret that is not the client's. */
async function insertClient({ knex }: Database) {
  const [id, clientId, secretId] = [newId("org"), `lgc_${"c".repeat(22)}`, newId("sec")];
  const clientSecret = `lgs_${"s".repeat(43)}`;
  const at = { created_at: Date.now(), updated_at: Date.now() };
  const organization = { id, name: "Before", plan: "growth" as const };
  await knex("organizations").insert({ ...organization, ...at });
  const stale = { id: secretId, hash: sha256("lgs_stale"), expiresAt: null };
  // Typed as a plain string, because the types describe the current schema.
  const table: string = "clients";
  await knex(table).insert({
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

test("an upgraded client authenticates with its stored secret, not with that of its document", async (t) => {
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
  const stale = await postAsClient(
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

test("the upgrade keeps the foreign keys of clients", async (t) => {
  const { database, first, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await migrateToDocuments(database);
  const { clientId } = await insertClient(database);
  t.true((await first.migrate()).includes(DROP));
  t.false(await database.knex.schema.hasColumn("clients", "document"));
  const at = { created_at: 0, updated_at: 0 };
  const orphan = { id: "lgc_orphan", organization_id: "org_unknown", redirect_uris: "[]", ...at };
  await t.throwsAsync(database.knex("clients").insert(orphan));
  await database.knex("clients").where({ id: clientId }).delete();
  t.deepEqual(await database.knex("client_secrets"), []);
});

test("an upgrade interrupted after dropping the column is completed by the next one", async (t) => {
  const { database, first, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await migrateToDocuments(database);
  await insertClient(database);
  await database.knex.raw("alter table clients drop column document");
  t.true((await first.migrate()).includes(DROP));
  t.deepEqual(await first.pendingMigrations(), []);
});
