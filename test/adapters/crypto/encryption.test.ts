import { randomBytes } from "node:crypto";
import test from "ava";
import { createEncryption } from "../../../adapters/crypto/encryption.ts";
import { openStorage } from "../../../adapters/index.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();

test.after.always(() => storage.close());

const key = randomBytes(32);
const encryption = createEncryption(key);

test("an encrypted text is decrypted to the original", (t) => {
  for (const text of ["", "a", "ü – 漢字 – \u{1f512} – \0", "x".repeat(100_000)]) {
    t.is(encryption.decrypt(encryption.encrypt(text, "a context"), "a context"), text);
    t.is(createEncryption(key).decrypt(encryption.encrypt(text, ""), ""), text);
  }
});

test("encrypting the same text twice yields different ciphertexts", (t) => {
  t.is(new Set(Array.from({ length: 1000 }, () => encryption.encrypt("text", "a context"))).size, 1000);
});

test("another key or another context does not decrypt a ciphertext", (t) => {
  const ciphertext = encryption.encrypt("text", "a context");
  t.throws(() => createEncryption(randomBytes(32)).decrypt(ciphertext, "a context"));
  for (const context of ["", "A context", "a context ", "another"])
    t.throws(() => encryption.decrypt(ciphertext, context), undefined, JSON.stringify(context));
});

test("a remembered text is decrypted neither with another context nor after its key was replaced", (t) => {
  const rotated = createEncryption(key);
  const ciphertext = rotated.encrypt("text", "a context");
  for (let round = 0; round < 2; round++) {
    t.is(rotated.decryptOften(ciphertext, "a context"), "text");
    t.throws(() => rotated.decryptOften(ciphertext, "another"));
  }
  rotated.use([randomBytes(32), key]);
  t.is(rotated.decryptOften(ciphertext, "a context"), "text");
  rotated.use(randomBytes(32));
  t.throws(() => rotated.decryptOften(ciphertext, "a context"));
});

test("a ciphertext with any bit flipped is rejected", (t) => {
  const bytes = Buffer.from(encryption.encrypt("text", "a context").slice(3), "base64url");
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    t.throws(
      () => encryption.decrypt(`v1.${changed.toString("base64url")}`, "a context"),
      undefined,
      `bit ${bit}`,
    );
  }
});

test("a truncated or extended ciphertext is rejected", (t) => {
  const bytes = Buffer.from(encryption.encrypt("text", "a context").slice(3), "base64url");
  for (let length = 0; length < bytes.length; length++) {
    const cut = bytes.subarray(0, length).toString("base64url");
    t.throws(() => encryption.decrypt(`v1.${cut}`, "a context"), undefined, `${length} bytes`);
  }
  for (const more of [Buffer.concat([bytes, Buffer.alloc(1)]), Buffer.concat([Buffer.alloc(1), bytes])])
    t.throws(() => encryption.decrypt(`v1.${more.toString("base64url")}`, "a context"));
});

test("a truncated authentication tag, which the cipher accepts, is rejected", (t) => {
  // With an empty text, the bytes end with the tag. Truncated, it has 12 or 4 bytes and is easier to guess.
  const bytes = Buffer.from(encryption.encrypt("", "a context").slice(3), "base64url");
  for (const length of [4, 8, 12, 13, 14, 15]) {
    const cut = bytes.subarray(0, 12 + length).toString("base64url");
    t.throws(() => encryption.decrypt(`v1.${cut}`, "a context"), undefined, `${length} bytes`);
  }
});

test("a ciphertext of another version is rejected", (t) => {
  const ciphertext = encryption.encrypt("text", "a context");
  for (const text of [
    "",
    "v1.",
    "v1",
    ciphertext.slice(3),
    `v2.${ciphertext.slice(3)}`,
    ` ${ciphertext}`,
    "null",
  ])
    t.throws(() => encryption.decrypt(text, "a context"));
});

test("an encryption key of the wrong length is rejected", (t) => {
  for (const length of [0, 16, 31, 33, 64])
    t.throws(() => createEncryption(randomBytes(length)), { instanceOf: TypeError });
});

const { first, second, database } = storage;

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
