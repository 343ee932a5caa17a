import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const IV_BYTES = 12; // NIST SP 800-38D §8.2: 96 bits for AES-GCM
const TAG_BYTES = 16;
const VERSION = "v1.";

/** Encrypts secrets that must be readable later, such as keys and webhook secrets, with AES-256-GCM. */
export type Encryption = {
  /** @param context authenticated with the text: only the same context decrypts it */
  encrypt(text: string, context: string): string;
  /** @throws Error if the key or the context differs, or the ciphertext was modified */
  decrypt(ciphertext: string, context: string): string;
};

/**
 * @param key 32 bytes
 * @throws TypeError for a key of another length
 */
export function createEncryption(key: Uint8Array): Encryption {
  if (key.byteLength !== 32) throw new TypeError("the encryption key must have 32 bytes");
  return {
    encrypt(text, context) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return VERSION + Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
    },
    decrypt(ciphertext, context) {
      if (!ciphertext.startsWith(VERSION)) throw new Error("the ciphertext has an unknown version");
      const bytes = Buffer.from(ciphertext.slice(VERSION.length), "base64url");
      // Without the length, Node accepts a truncated tag of four bytes, which can be guessed.
      const options = { authTagLength: TAG_BYTES };
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES), options)
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const body = bytes.subarray(IV_BYTES + TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
    },
  };
}
