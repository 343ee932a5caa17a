import { randomBytes } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import test from "ava";
import { createEncryption, type Encryption } from "../../../adapters/crypto/encryption.ts";
import { contextOf } from "../../../adapters/database/tables/columns.ts";
import { TABLES } from "../../../adapters/database/tables/index.ts";
import { webhooks } from "../../../adapters/database/tables/webhooks.ts";
import { openStorage } from "../../../adapters/index.ts";
import { reencrypt } from "../../../adapters/reencryption.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";
import { ROOT } from "../../harness/program.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, database, knex, encryptionKey: oldKey, url } = storage;
const keyRows = () => knex("sealed_keys");
const newKey = randomBytes(32);
const generatedAgain = () => Promise.reject(new Error("generated again"));

test.serial("processes that concurrently generate a key all get the same one", async (t) => {
  for (let round = 0; round < 5; round++) {
    const generated: string[] = [];
    const generate = async () => {
      generated.push(randomBytes(32).toString("base64url"));
      return generated.at(-1) as string;
    };
    const keys = await atOnce(10, (index) => either(index).keys.load(`shared-${round}`, generate));
    t.is(new Set(keys).size, 1);
    t.true(generated.includes(keys[0] as string));
    t.is(await second.keys.load(`shared-${round}`, generatedAgain), keys[0] as string);
  }
});

test.serial("another encryption key neither decrypts nor replaces a stored key", async (t) => {
  const key = await first.keys.load("guarded", async () => "the first key");
  const stranger = openStorage(url, randomBytes(32));
  t.teardown(() => stranger.close());
  const refusal = { name: "WrongEncryptionKey" };
  const replace = async () => "another";
  await t.throwsAsync(stranger.keys.load("guarded", replace), refusal);
  await t.throwsAsync(stranger.keys.check(), refusal);
  t.is(await second.keys.load("guarded", replace), key);
});

test.serial("a key whose generation fails is not stored", async (t) => {
  await t.throwsAsync(first.keys.load("failed", generatedAgain), { message: "generated again" });
  t.is(await second.keys.load("failed", async () => "later"), "later");
});

test("every file that encrypts takes the context from a declared column", (t) => {
  const sources = globSync("adapters/**/*.ts", { cwd: ROOT })
    .filter((file) => !/adapters\/(crypto\/encryption|reencryption)\.ts$/.test(file))
    .map((file) => ({ file, text: readFileSync(ROOT + file, "utf8") }))
    .filter(({ text }) => /\bencryption\.encrypt\(/.test(text));
  t.true(sources.length > 4);
  // What deliveries exchanged is not encrypted again.
  for (const { file, text } of sources) t.regex(text, /contextOf\(|ContextOf\(/, file);
  const encrypted = TABLES.flatMap(({ name, columns }) =>
    Object.entries(columns).flatMap(([column, { facts }]) =>
      facts.encryptedAs ? [`${name}.${column}`] : [],
    ),
  );
  t.deepEqual(encrypted, [
    ...["sealed_keys.sealed", "idempotency_keys.answer", "totp_secrets.secret", "mails.secret"],
    ...["webhooks.url", "webhooks.secret", "webhooks.previous_secret"],
  ]);
});

test.serial("concurrent processes encrypt each value again once, and keep what changes", async (t) => {
  await keyRows().delete();
  const purposes = Array.from({ length: 250 }, (_, index) => `key-${String(index).padStart(3, "0")}`);
  for (const purpose of purposes) await first.keys.load(purpose, async () => `the key of ${purpose}`);
  for (const one of [first, second]) one.useEncryptionKeys([newKey, oldKey]);
  t.is(await first.countOutdatedCiphertexts(), 250);
  const changing = first.keys.replace("key-200", () => "the changed key");
  const results = await atOnce(6, (index) => either(index).reencrypt());
  await changing;
  const total = results.reduce((sum, result) => sum + (result?.reencrypted ?? 0), 0);
  t.true(total === 250 || total === 249, `${total}`);
  t.is(await first.countOutdatedCiphertexts(), 0);

  const current = openStorage(url, newKey);
  t.teardown(() => current.close());
  t.is(await current.keys.check(), purposes.length);
  t.is(await current.keys.load("key-007", generatedAgain), "the key of key-007");
  t.is(await current.keys.load("key-200", generatedAgain), "the changed key");
});

test.serial("the URL and both secrets of a webhook are encrypted again", async (t) => {
  const organizationId = await storage.createOrganization();
  first.useEncryptionKeys(oldKey);
  const webhook = await storage.createWebhook(organizationId);
  await first.webhooks.rotateSecret(organizationId, webhook.id, "whsec_bmV3", Date.now() + 60_000, OPERATOR);
  const readRow = () => knex("webhooks").where({ id: webhook.id }).first();
  const before = await readRow();
  first.useEncryptionKeys([newKey, oldKey]);
  await first.reencrypt();
  const after = await readRow();
  for (const column of ["url", "secret", "previous_secret"] as const) {
    const context = contextOf(webhooks.columns[column], webhook.id);
    const text = createEncryption(oldKey).decrypt(before?.[column] as string, context);
    t.is(createEncryption(newKey).decrypt(after?.[column] as string, context), text, column);
  }
});

test.serial("a value that no key decrypts is counted and left as it is", async (t) => {
  const lost = createEncryption(randomBytes(32)).encrypt("lost", "lost");
  await keyRows().insert({ purpose: "lost", sealed: lost, created_at: Date.now() });
  first.useEncryptionKeys([newKey, oldKey]);
  t.like(await first.reencrypt(), { unreadable: 1 });
  t.is((await keyRows().where({ purpose: "lost" }).first())?.sealed, lost);
  await keyRows().where({ purpose: "lost" }).delete();
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
  t.is(await first.keys.load("a-49", generatedAgain), "after");
  t.is(await first.countOutdatedCiphertexts(), 0);
});
