import { randomBytes } from "node:crypto";
import test from "ava";
import { createEncryption } from "../../../adapters/crypto/encryption.ts";

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
