import { randomBytes } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { InvalidSettings, type Settings } from "../config.ts";
import { parseEncryptionKeys } from "./parse-encryption-keys.ts";

const FILE = "encryption.key";
const KEY_BYTES = 32;
// The permissions of users who are neither the owner nor in the group. A container's volume may need those of the group.
const OTHERS = 0o007;

type KeySettings = Pick<Settings, "ENCRYPTION_KEY" | "ENCRYPTION_KEY_FILE" | "DATABASE_URL">;

/**
 * Returns the keys that encrypt at rest what can't be hashed: those of `ENCRYPTION_KEY`, or the content of a file. Without
 * either setting, the file is created on first use, next to a SQLite database or otherwise in `data/`.
 * @returns 32 bytes each: the first encrypts, all of them decrypt
 * @throws InvalidSettings if the file doesn't contain keys, or every user of the machine can read it
 */
export function encryptionKeys(settings: KeySettings): Buffer[] {
  if (settings.ENCRYPTION_KEY) return parseEncryptionKeys(settings.ENCRYPTION_KEY) as Buffer[];
  const file = keyFileOf(settings) as string;
  if (!existsSync(file)) {
    if (settings.ENCRYPTION_KEY_FILE) throw new InvalidSettings([`${file} doesn't exist`]);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    createOnce(file, newEncryptionKey());
  }
  return readKeyFile(file);
}

/** Returns the file that the keys are read from, or undefined if `ENCRYPTION_KEY` contains them. */
export function keyFileOf({
  ENCRYPTION_KEY,
  ENCRYPTION_KEY_FILE,
  DATABASE_URL,
}: KeySettings): string | undefined {
  if (ENCRYPTION_KEY) return undefined;
  if (ENCRYPTION_KEY_FILE) return path.resolve(ENCRYPTION_KEY_FILE);
  const folder = DATABASE_URL.startsWith("sqlite:")
    ? path.dirname(DATABASE_URL.slice("sqlite:".length).split("?", 1)[0] as string)
    : "data";
  return path.resolve(folder, FILE);
}

/** Reads the keys of a file. @throws InvalidSettings */
export function readKeyFile(file: string): Buffer[] {
  const keys = parseEncryptionKeys(readFileSync(file, "utf8"));
  if (!keys) throw new InvalidSettings([`${file} must contain ${KEY_BYTES} bytes in base64url`]);
  // Windows has no such permissions, and Node reports all of them.
  if (process.platform !== "win32" && statSync(file).mode & OTHERS)
    throw new InvalidSettings([`${file} must not be accessible to other users: run chmod 600 ${file}`]);
  return keys;
}

/** Replaces the keys of a file. A process that reads it sees either the old or the new ones. */
export function writeKeyFile(file: string, keys: readonly Buffer[]): void {
  const draft = `${file}.${process.pid}`;
  const { mode } = statSync(file);
  writeFileSync(draft, `${keys.map((key) => key.toString("base64url")).join("\n")}\n`, { mode });
  renameSync(draft, file);
}

/** Generates a key, in base64url. */
export function newEncryptionKey(): string {
  return randomBytes(KEY_BYTES).toString("base64url");
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
