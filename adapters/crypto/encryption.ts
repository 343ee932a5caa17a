import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import { tryTo } from "../../resources/try-to.ts";

const KEY_BYTES = 32;
const IV_BYTES = 12; // NIST SP 800-38D §8.2: 96 bits for AES-GCM
const TAG_BYTES = 16;
const VERSION = "v1.";
// In characters: enough for the URLs and secrets of about 10,000 webhooks.
const REMEMBERED_MAX = 4_000_000;

/** Encrypts secrets that must be readable later with AES-256-GCM. */
export type Encryption = ReturnType<typeof createEncryption>;

/** One key of 32 bytes, or several: the first encrypts, all decrypt. Without any, nothing can be encrypted. */
export type EncryptionKeys = Uint8Array | readonly Uint8Array[];

/** @throws TypeError for a key of another length */
export function createEncryption(initialKeys: EncryptionKeys) {
  let keys = checked(initialKeys);
  const remembered = new LRUCache<string, string>({
    maxSize: REMEMBERED_MAX,
    sizeCalculation: (text, key) => text.length + key.length,
  });

  function decrypt(ciphertext: string, context: string): string {
    if (!ciphertext.startsWith(VERSION)) throw new Error("the ciphertext has an unknown version");
    for (const key of keys) {
      const text = open(ciphertext, context, key);
      if (text !== undefined) return text;
    }
    throw new Error("the ciphertext was modified, or encrypted with another key or context");
  }

  return {
    /** @param context authenticated with the text: only the same context decrypts it */
    encrypt(text: string, context: string): string {
      const [key] = keys;
      if (!key) throw new Error("there is no encryption key yet");
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return VERSION + Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
    },

    decrypt,

    /** As `decrypt`, and remembers the text until the keys change: for values that are needed again and again. */
    decryptOften(ciphertext: string, context: string): string {
      const key = `${ciphertext} ${context}`;
      const text = remembered.get(key) ?? decrypt(ciphertext, context);
      remembered.set(key, text);
      return text;
    },

    isCurrent: (ciphertext: string, context: string): boolean =>
      keys[0] !== undefined && open(ciphertext, context, keys[0]) !== undefined,

    use(newKeys: EncryptionKeys): void {
      keys = checked(newKeys);
      remembered.clear();
    },
  };
}

function checked(given: EncryptionKeys): readonly Uint8Array[] {
  const keys = given instanceof Uint8Array ? [given] : given;
  if (keys.some(({ byteLength }) => byteLength !== KEY_BYTES))
    throw new TypeError("an encryption key must have 32 bytes");
  return keys;
}

function open(ciphertext: string, context: string, key: Uint8Array): string | undefined {
  const bytes = Buffer.from(ciphertext.slice(VERSION.length), "base64url");
  // Without the length, Node accepts a truncated tag of four bytes, which can be guessed.
  const options = { authTagLength: TAG_BYTES };
  return tryTo(() => {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES), options)
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const body = bytes.subarray(IV_BYTES + TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
  });
}
