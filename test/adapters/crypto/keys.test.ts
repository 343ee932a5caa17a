import { randomBytes } from "node:crypto";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

test("processes that concurrently generate a key all get the same one", async (t) => {
  for (let round = 0; round < 10; round++) {
    const generated: string[] = [];
    const keys = await atOnce(10, (index) =>
      (index % 2 ? first : second).keys.load(`shared-${round}`, async () => {
        const key = randomBytes(32).toString("base64url");
        generated.push(key);
        return key;
      }),
    );
    t.is(new Set(keys).size, 1);
    t.true(generated.includes(keys[0] as string));
    const later = await second.keys.load(`shared-${round}`, () =>
      Promise.reject(new Error("generated again")),
    );
    t.is(later, keys[0] as string);
  }
});

test("a key is stored encrypted, with a different ciphertext each time", async (t) => {
  for (const purpose of ["plain-1", "plain-2"]) await first.keys.load(purpose, async () => "the key itself");
  const rows: { sealed: string }[] = await database.knex("sealed_keys").where("purpose", "like", "plain-%");
  t.is(new Set(rows.map(({ sealed }) => sealed)).size, 2);
  for (const { sealed } of rows) {
    t.false(sealed.includes("the key itself"));
    t.false(Buffer.from(sealed, "base64url").includes("the key itself"));
  }
});

test("another encryption key neither decrypts nor replaces a stored key", async (t) => {
  const key = await first.keys.load("guarded", async () => "the first key");
  const stranger = openStorage(storage.url, randomBytes(32));
  t.teardown(() => stranger.close());
  const refusal = { name: "WrongEncryptionKey" };
  await t.throwsAsync(
    stranger.keys.load("guarded", async () => "another"),
    refusal,
  );
  await t.throwsAsync(stranger.keys.check(), refusal);
  t.is(await second.keys.load("guarded", async () => "another"), key);
});

test("a key that was copied to another purpose is not decrypted", async (t) => {
  await first.keys.load("here", async () => "mine");
  const stored = await database.knex("sealed_keys").where({ purpose: "here" }).first();
  if (!stored) return t.fail();
  await database.knex("sealed_keys").insert({ ...stored, purpose: "there" });
  await t.throwsAsync(
    second.keys.load("there", async () => "another"),
    { name: "WrongEncryptionKey" },
  );
  await database.knex("sealed_keys").where({ purpose: "there" }).delete();
});

test("a key whose generation fails is not stored", async (t) => {
  await t.throwsAsync(
    first.keys.load("failed", () => Promise.reject(new Error("no randomness"))),
    { message: "no randomness" },
  );
  t.is(await second.keys.load("failed", async () => "later"), "later");
});
