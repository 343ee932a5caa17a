import { randomBytes } from "node:crypto";
import { existsSync, linkSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createFolder, syncFolder } from "../../adapters/durable-files.ts";
import type { Storage } from "../../adapters/index.ts";
import { InvalidSettings, type Settings } from "../settings/config.ts";
import { parseEncryptionKeys } from "../settings/parse-encryption-keys.ts";
import { StartupError } from "../startup-errors.ts";

const FILE = "encryption.key";
const KEY_BYTES = 32;
// The permissions of users who are neither the owner nor in the group. A container's volume may need those of the group.
const OTHERS = 0o007;

type KeySettings = Pick<Settings, "ENCRYPTION_KEY" | "ENCRYPTION_KEY_FILE" | "DATABASE_URL">;
type EncryptedStorage = Pick<Storage, "countOutdatedCiphertexts" | "useEncryptionKeys" | "beginAuditLogs">;

/**
 * Returns the keys that encrypt at rest what can't be hashed: those of `ENCRYPTION_KEY`, or the content of a file. Without
 * either setting, the file is next to a SQLite database, or otherwise in `data/`.
 * @returns 32 bytes each: the first encrypts, all of them decrypt; empty until `createMissingKey` has created the file
 * @throws InvalidSettings if the file doesn't contain keys, or every user of the machine can read it
 */
export function encryptionKeys(settings: KeySettings): Buffer[] {
  if (settings.ENCRYPTION_KEY) return parseEncryptionKeys(settings.ENCRYPTION_KEY) as Buffer[];
  const file = keyFileOf(settings) as string;
  if (existsSync(file)) return readKeyFile(file);
  if (settings.ENCRYPTION_KEY_FILE) throw new InvalidSettings([`${file} doesn't exist`]);
  return [];
}

/**
 * Creates the key of a migrated database that contains nothing encrypted yet, unless the settings have one. It is on the
 * disk before it is used.
 * @throws StartupError if the key of the database is missing
 */
export async function createMissingKey(settings: KeySettings, storage: EncryptedStorage): Promise<void> {
  if (settings.ENCRYPTION_KEY || settings.ENCRYPTION_KEY_FILE) return;
  const file = keyFileOf(settings) as string;
  await rejectLostKey(settings, storage);
  if (!existsSync(file)) {
    createFolder(path.dirname(file));
    createOnce(file, newEncryptionKey());
  }
  storage.useEncryptionKeys(readKeyFile(file));
  await storage.beginAuditLogs();
}

/** Rejects a database that contains encrypted values if the file of their key is missing. @throws StartupError */
export async function rejectLostKey(
  settings: KeySettings,
  storage: Pick<EncryptedStorage, "countOutdatedCiphertexts">,
): Promise<void> {
  const file = keyFileOf(settings);
  // The file is looked for again, because another process may have created it before it encrypted something.
  if (!file || existsSync(file) || (await storage.countOutdatedCiphertexts()) === 0 || existsSync(file))
    return;
  throw new StartupError(
    `${file} is missing, but the database contains values that are encrypted with its key. Restore that file, or set ENCRYPTION_KEY or ENCRYPTION_KEY_FILE.`,
  );
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

/** Replaces the keys of a file, also on the disk. A process that reads it sees either the old or the new ones. */
export function writeKeyFile(file: string, keys: readonly Buffer[]): void {
  const draft = `${file}.${process.pid}`;
  const { mode } = statSync(file);
  const content = `${keys.map((key) => key.toString("base64url")).join("\n")}\n`;
  writeFileSync(draft, content, { mode, flush: true });
  renameSync(draft, file);
  syncFolder(path.dirname(file));
}

/** Generates a key, in base64url. */
export function newEncryptionKey(): string {
  return randomBytes(KEY_BYTES).toString("base64url");
}

/** Writes a file unless it exists. If two processes start concurrently, one creates it and both read it complete. */
function createOnce(file: string, content: string): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, content, { mode: 0o600, flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(draft);
  }
  syncFolder(path.dirname(file)); // also after the link of another process, which may not have synced it yet
}
