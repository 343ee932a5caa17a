import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const IV_BYTES = 12; // NIST SP 800-38D §8.2: 96 bits for AES-GCM
const TAG_BYTES = 16;
const VERSION = "v1.";

/** Encrypts what has to be read again (keys, webhook secrets) before it is stored. */
export type Seal = {
  /** @param context bound to the text: sealed for one purpose, it does not open for another. */
  close(text: string, context: string): string;
  /** @throws Error when the key or the context is another one, or the text was changed. */
  open(sealed: string, context: string): string;
};

/** @param key 32 bytes */
export function createSeal(key: Uint8Array): Seal {
  if (key.byteLength !== 32) throw new TypeError("the encryption key must have 32 bytes");
  return {
    close(text, context) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return VERSION + Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
    },
    open(sealed, context) {
      if (!sealed.startsWith(VERSION)) throw new Error("sealed by an unknown version");
      const bytes = Buffer.from(sealed.slice(VERSION.length), "base64url");
      // Without the length a tag of four bytes, which can be guessed, would be taken for a whole one.
      const options = { authTagLength: TAG_BYTES };
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES), options)
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const body = bytes.subarray(IV_BYTES + TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
    },
  };
}
