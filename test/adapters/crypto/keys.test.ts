import { randomBytes } from "node:crypto";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { atOnce, createTestStorage } from "../harness/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

test("10 that make a key at once over two processes all get the same one", async (t) => {
  for (let round = 0; round < 10; round++) {
    const made: string[] = [];
    const keys = await atOnce(10, (index) =>
      (index % 2 ? first : second).keys.load(`shared-${round}`, async () => {
        const key = randomBytes(32).toString("base64url");
        made.push(key);
        return key;
      }),
    );
    t.is(new Set(keys).size, 1);
    t.true(made.includes(keys[0] as string));
    const later = await second.keys.load(`shared-${round}`, () => Promise.reject(new Error("made again")));
    t.is(later, keys[0] as string);
  }
});

test("a key is not stored as it is, nor twice alike", async (t) => {
  for (const purpose of ["plain-1", "plain-2"]) await first.keys.load(purpose, async () => "the key itself");
  const rows: { sealed: string }[] = await database.knex("sealed_keys").where("purpose", "like", "plain-%");
  t.is(new Set(rows.map(({ sealed }) => sealed)).size, 2);
  for (const { sealed } of rows) {
    t.false(sealed.includes("the key itself"));
    t.false(Buffer.from(sealed, "base64url").includes("the key itself"));
  }
});

test("another encryption key opens nothing and replaces nothing", async (t) => {
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

test("a key that was moved to another purpose does not open", async (t) => {
  await first.keys.load("here", async () => "mine");
  const { sealed } = await database.knex("sealed_keys").where({ purpose: "here" }).first();
  await database.knex("sealed_keys").insert({ purpose: "there", sealed, created_at: 0 });
  await t.throwsAsync(
    second.keys.load("there", async () => "another"),
    { name: "WrongEncryptionKey" },
  );
  await database.knex("sealed_keys").where({ purpose: "there" }).delete();
});

test("a key that could not be made is not stored", async (t) => {
  await t.throwsAsync(
    first.keys.load("failed", () => Promise.reject(new Error("no randomness"))),
    { message: "no randomness" },
  );
  t.is(await second.keys.load("failed", async () => "later"), "later");
});
