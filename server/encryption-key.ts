import { randomBytes } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Settings, WrongSettings } from "./config.ts";

const FILE = "encryption.key";
const KEY_BYTES = 32;

/**
 * The key that encrypts at rest what cannot be hashed: `ENCRYPTION_KEY`, or a file that is made once. Beside a
 * SQLite database the file lies next to it, otherwise in `data/`.
 * @returns 32 bytes
 * @throws WrongSettings for a file that holds something else
 */
export function encryptionKey({ ENCRYPTION_KEY, DATABASE_URL }: Settings): Buffer {
  if (ENCRYPTION_KEY) return Buffer.from(ENCRYPTION_KEY, "base64url");
  const folder = DATABASE_URL.startsWith("sqlite:")
    ? path.dirname(DATABASE_URL.slice("sqlite:".length).split("?", 1)[0] as string)
    : "data";
  const file = path.resolve(folder, FILE);
  if (!existsSync(file)) {
    mkdirSync(path.dirname(file), { recursive: true });
    makeOnce(file, randomBytes(KEY_BYTES).toString("base64url"));
  }
  const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64url");
  if (key.length !== KEY_BYTES)
    throw new WrongSettings([`${file} must hold ${KEY_BYTES} bytes in base64url`]);
  return key;
}

/** Of two processes that start at once, one makes the file, whole, and the other finds it. */
function makeOnce(file: string, content: string): void {
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
