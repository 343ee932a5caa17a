import { randomBytes } from "node:crypto";
import test from "ava";
import { createEncryption } from "../../adapters/crypto/encryption.ts";

const key = randomBytes(32);
const encryption = createEncryption(key);
const CONTEXT = "a context";

const bytesOf = (text: string) => Buffer.from(encryption.encrypt(text, CONTEXT).slice(3), "base64url");
const ciphertextOf = (bytes: Buffer) => `v1.${bytes.toString("base64url")}`;

test("an encrypted text is decrypted to the original", (t) => {
  for (const text of ["", "a", "ü – 漢字 – \u{1f512} – \0", "x".repeat(100_000)]) {
    t.is(encryption.decrypt(encryption.encrypt(text, CONTEXT), CONTEXT), text);
    t.is(createEncryption(key).decrypt(encryption.encrypt(text, ""), ""), text);
  }
});

test("encrypting the same text twice yields different ciphertexts", (t) => {
  t.is(new Set(Array.from({ length: 1000 }, () => encryption.encrypt("text", CONTEXT))).size, 1000);
});

test("another key or another context does not decrypt a ciphertext", (t) => {
  const ciphertext = encryption.encrypt("text", CONTEXT);
  t.throws(() => createEncryption(randomBytes(32)).decrypt(ciphertext, CONTEXT));
  for (const context of ["", "A context", "a context ", "another"])
    t.throws(() => encryption.decrypt(ciphertext, context), undefined, JSON.stringify(context));
});

test("a remembered text is decrypted neither with another context nor after its key was replaced", (t) => {
  const rotated = createEncryption(key);
  const ciphertext = rotated.encrypt("text", CONTEXT);
  for (let round = 0; round < 2; round++) {
    t.is(rotated.decryptOften(ciphertext, CONTEXT), "text");
    t.throws(() => rotated.decryptOften(ciphertext, "another"));
  }
  rotated.use([randomBytes(32), key]);
  t.is(rotated.decryptOften(ciphertext, CONTEXT), "text");
  rotated.use(randomBytes(32));
  t.throws(() => rotated.decryptOften(ciphertext, CONTEXT));
});

test("a ciphertext with any bit flipped is rejected", (t) => {
  const bytes = bytesOf("text");
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    t.throws(() => encryption.decrypt(ciphertextOf(changed), CONTEXT), undefined, `bit ${bit}`);
  }
});

test("a truncated or extended ciphertext is rejected, also if the cipher accepts what is left of the tag", (t) => {
  // With an empty text, the bytes end with the tag. Truncated, it has 12 or 4 bytes and is easier to guess.
  for (const bytes of [bytesOf("text"), bytesOf("")]) {
    const others = Array.from(bytes, (_, length) => bytes.subarray(0, length));
    others.push(Buffer.concat([bytes, Buffer.alloc(1)]), Buffer.concat([Buffer.alloc(1), bytes]));
    for (const other of others)
      t.throws(() => encryption.decrypt(ciphertextOf(other), CONTEXT), undefined, `${other.length} bytes`);
  }
});

test("a ciphertext of another version is rejected", (t) => {
  const rest = encryption.encrypt("text", CONTEXT).slice(3);
  for (const text of ["", "v1.", "v1", rest, `v2.${rest}`, ` v1.${rest}`, "null"])
    t.throws(() => encryption.decrypt(text, CONTEXT), undefined, text);
});

test("an encryption key of the wrong length is rejected", (t) => {
  for (const length of [0, 16, 31, 33, 64])
    t.throws(() => createEncryption(randomBytes(length)), { instanceOf: TypeError });
});
