import { randomBytes } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import test from "ava";
import { createEncryption, type Encryption } from "../../adapters/crypto/encryption.ts";
import { contextOf } from "../../adapters/database/tables/columns.ts";
import { TABLES } from "../../adapters/database/tables/index.ts";
import { webhooks } from "../../adapters/database/tables/webhooks.ts";
import { openStorage } from "../../adapters/index.ts";
import { reencrypt } from "../../adapters/reencryption.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { atOnce, createTestStorage } from "../harness/database/storage.ts";
import { ROOT } from "../harness/program.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
const oldKey = storage.encryptionKey;
const newKey = randomBytes(32);
test.after.always(() => storage.close());

/** The columns of the declaration that a context belongs to. */
const ENCRYPTED = TABLES.flatMap(({ name, columns }) =>
  Object.entries(columns).flatMap(([column, { facts }]) => (facts.encryptedAs ? [`${name}.${column}`] : [])),
);

test("every file that encrypts takes the context from a declared column", (t) => {
  const sources = globSync("adapters/**/*.ts", { cwd: ROOT })
    .filter((file) => !/adapters\/(crypto\/encryption|reencryption)\.ts$/.test(file))
    .map((file) => ({ file, text: readFileSync(ROOT + file, "utf8") }))
    .filter(({ text }) => /\bencryption\.encrypt\(/.test(text));
  t.true(sources.length > 4);
  // What deliveries exchanged is not encrypted again.
  for (const { file, text } of sources) t.regex(text, /contextOf\(|ContextOf\(/, file);
  t.deepEqual(ENCRYPTED, [
    "sealed_keys.sealed",
    "idempotency_keys.answer",
    "totp_secrets.secret",
    "mails.secret",
    "webhooks.url",
    "webhooks.secret",
    "webhooks.previous_secret",
  ]);
});

test.serial(
  "concurrent processes encrypt each value again once, and keep what changes meanwhile",
  async (t) => {
    const purposes = Array.from({ length: 250 }, (_, index) => `key-${String(index).padStart(3, "0")}`);
    for (const purpose of purposes) await first.keys.load(purpose, async () => `the key of ${purpose}`);
    for (const one of [first, second]) one.useEncryptionKeys([newKey, oldKey]);
    const outdated = purposes.length;
    t.is(await first.countOutdatedCiphertexts(), outdated);
    const changing = first.keys.replace("key-200", () => "the changed key");
    const results = await atOnce(6, (index) => (index % 2 ? first : second).reencrypt());
    await changing;
    const done = results.flatMap((result) => (result ? [result.reencrypted] : []));
    const total = done.reduce((sum, count) => sum + count, 0);
    t.true(total === outdated || total === outdated - 1, `${total}`);
    t.is(await first.countOutdatedCiphertexts(), 0);

    const current = openStorage(storage.url, newKey);
    t.teardown(() => current.close());
    t.is(await current.keys.check(), purposes.length);
    const load = (purpose: string) =>
      current.keys.load(purpose, () => Promise.reject(new Error("generated")));
    t.is(await load("key-007"), "the key of key-007");
    t.is(await load("key-200"), "the changed key");
  },
);

test.serial("the URL and both secrets of a webhook are encrypted again", async (t) => {
  const { organization } = await first.organizations.create("Rotated", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["link.created" as const], enabled: true };
  const encryption = createEncryption(oldKey);
  first.useEncryptionKeys(oldKey);
  const webhook = await first.webhooks.create(organization.id, OPERATOR, fields, "whsec_b2xk");
  if (!("id" in webhook)) return t.fail();
  await first.webhooks.rotateSecret(organization.id, webhook.id, "whsec_bmV3", Date.now() + 60_000, OPERATOR);
  const readRow = () => database.knex("webhooks").where({ id: webhook.id }).first();
  const before = await readRow();
  first.useEncryptionKeys([newKey, oldKey]);
  await first.reencrypt();
  const after = await readRow();
  const current = createEncryption(newKey);
  for (const column of ["url", "secret", "previous_secret"] as const) {
    const context = contextOf(webhooks.columns[column], webhook.id);
    const text = encryption.decrypt(before?.[column] as string, context);
    t.is(current.decrypt(after?.[column] as string, context), text, column);
  }
});

test.serial("a value that no key decrypts is counted and left as it is", async (t) => {
  const lost = createEncryption(randomBytes(32)).encrypt("lost", "lost");
  await database.knex("sealed_keys").insert({ purpose: "lost", sealed: lost, created_at: Date.now() });
  t.teardown(async () => {
    await database.knex("sealed_keys").where({ purpose: "lost" }).delete();
  });
  first.useEncryptionKeys([newKey, oldKey]);
  t.like(await first.reencrypt(), { unreadable: 1 });
  const row = await database.knex("sealed_keys").where({ purpose: "lost" }).first();
  t.is(row?.sealed, lost);
});

test.serial("a value that changes after it was read is left to the change", async (t) => {
  const purposes = Array.from({ length: 50 }, (_, index) => `a-${String(index).padStart(2, "0")}`);
  for (const purpose of purposes) await first.keys.load(purpose, async () => "before");
  const keys = [randomBytes(32), newKey, oldKey];
  first.useEncryptionKeys(keys);
  const encryption = createEncryption(keys);
  let changing: Promise<void> | undefined;
  // Values are read in batches of a hundred. One of the first batch changes after that, before its turn.
  const late: Encryption = {
    ...encryption,
    encrypt(text, context) {
      changing ??= first.keys.replace("a-49", () => "after");
      return encryption.encrypt(text, context);
    },
  };
  await reencrypt(database, late);
  await changing;
  t.is(await first.keys.load("a-49", () => Promise.reject(new Error("generated"))), "after");
  t.is(await first.countOutdatedCiphertexts(), 0);
});
