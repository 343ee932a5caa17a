import { randomBytes } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { InvalidSettings, type Settings } from "./config.ts";

const FILE = "encryption.key";
const KEY_BYTES = 32;

/**
 * Returns the key that encrypts at rest what can't be hashed: `ENCRYPTION_KEY`, or the content of a file that is created
 * on first use, next to a SQLite database or otherwise in `data/`.
 * @returns 32 bytes
 * @throws InvalidSettings if the file doesn't contain a key
 */
export function encryptionKey({ ENCRYPTION_KEY, DATABASE_URL }: Settings): Buffer {
  if (ENCRYPTION_KEY) return Buffer.from(ENCRYPTION_KEY, "base64url");
  const folder = DATABASE_URL.startsWith("sqlite:")
    ? path.dirname(DATABASE_URL.slice("sqlite:".length).split("?", 1)[0] as string)
    : "data";
  const file = path.resolve(folder, FILE);
  if (!existsSync(file)) {
    mkdirSync(path.dirname(file), { recursive: true });
    createOnce(file, randomBytes(KEY_BYTES).toString("base64url"));
  }
  const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64url");
  if (key.length !== KEY_BYTES)
    throw new InvalidSettings([`${file} must contain ${KEY_BYTES} bytes in base64url`]);
  return key;
}

/** Writes a file unless it exists. If two processes start concurrently, one creates it and both read it complete. */
function createOnce(file: string, content: string): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(draft);
  }
}
