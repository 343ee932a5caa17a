const KEY_BYTES = 32;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Returns the encryption keys in a text, separated by commas or line breaks; undefined if it is anything else. */
export function parseEncryptionKeys(text: string): Buffer[] | undefined {
  const parts = text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean);
  const keys = parts.map((part) => Buffer.from(BASE64URL.test(part) ? part : "", "base64url"));
  const isValid = keys.length > 0 && keys.every(({ length }) => length === KEY_BYTES);
  return isValid ? keys : undefined;
}
