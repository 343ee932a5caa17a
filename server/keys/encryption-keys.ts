import {
  closeSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { newSecret } from "../../adapters/crypto/ids.ts";
import { engineOf, isMissing, sqliteFile } from "../../adapters/database/engine.ts";
import { createFolder, syncFolder } from "../../adapters/durable-files.ts";
import type { Storage } from "../../adapters/index.ts";
import { InvalidSettings, type Settings } from "../settings/config.ts";
import { parseEncryptionKeys } from "../settings/setting-types.ts";
import { StartupError } from "../startup-errors.ts";

const FILE = "encryption.key";
const KEY_BYTES = 32;
// The permissions of users who are neither the owner nor in the group. A container's volume may need those of the group.
const OTHERS = 0o007;

type KeySettings = Pick<Settings, "ENCRYPTION_KEY" | "ENCRYPTION_KEY_FILE" | "DATABASE_URL">;
type EncryptedStorage = Pick<Storage, "countOutdatedCiphertexts" | "useEncryptionKeys">;

/**
 * Returns 32 bytes each: the first encrypts, all decrypt. Empty until `createMissingKey` has created the file. Throws
 * InvalidSettings if the file is malformed, or every user of the machine can read it.
 */
export function encryptionKeys(settings: KeySettings): Buffer[] {
  if (settings.ENCRYPTION_KEY) return parseEncryptionKeys(settings.ENCRYPTION_KEY) as Buffer[];
  const file = keyFileOf(settings) as string;
  if (existsSync(file)) return readKeyFile(file);
  if (settings.ENCRYPTION_KEY_FILE) throw new InvalidSettings([`${file} doesn't exist`]);
  return [];
}

/** Writes the key to the disk before it is used. Throws StartupError if the key of the database is missing. */
export async function createMissingKey(settings: KeySettings, storage: EncryptedStorage): Promise<void> {
  if (settings.ENCRYPTION_KEY || settings.ENCRYPTION_KEY_FILE) return;
  const file = keyFileOf(settings) as string;
  await rejectLostKey(settings, storage);
  if (!existsSync(file)) {
    createFolder(path.dirname(file));
    createOnce(file, newSecret(""));
  }
  storage.useEncryptionKeys(readKeyFile(file));
}

/** Throws StartupError if the file with the key of encrypted values is missing. */
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

/** Throws StartupError for an empty SQLite database next to a generated key: the real one is lost. */
export function rejectLostDatabase(settings: KeySettings): void {
  const { DATABASE_URL, ENCRYPTION_KEY_FILE } = settings;
  const keyFile = ENCRYPTION_KEY_FILE ? undefined : keyFileOf(settings);
  if (!keyFile) return;
  // In this order: another process that starts creates the database first.
  if (!existsSync(keyFile) || !isMissing(DATABASE_URL)) return;
  throw new StartupError(
    `${sqliteFile(DATABASE_URL)} is missing or empty, but ${keyFile} belongs to another database. Restore that database, or move the key away to start with an empty one.`,
  );
}

/** Returns undefined if `ENCRYPTION_KEY` contains the keys. */
export function keyFileOf({
  ENCRYPTION_KEY,
  ENCRYPTION_KEY_FILE,
  DATABASE_URL,
}: KeySettings): string | undefined {
  if (ENCRYPTION_KEY) return undefined;
  if (ENCRYPTION_KEY_FILE) return path.resolve(ENCRYPTION_KEY_FILE);
  const folder = engineOf(DATABASE_URL) === "sqlite" ? path.dirname(sqliteFile(DATABASE_URL)) : "data";
  return path.resolve(folder, FILE);
}

/** Throws InvalidSettings. */
export function readKeyFile(file: string): Buffer[] {
  const keys = parseEncryptionKeys(readFileSync(file, "utf8"));
  if (!keys) throw new InvalidSettings([`${file} must contain ${KEY_BYTES} bytes in base64url`]);
  // Windows has no such permissions, and Node reports all of them.
  if (process.platform !== "win32" && statSync(file).mode & OTHERS)
    throw new InvalidSettings([`${file} must not be accessible to other users: run chmod 600 ${file}`]);
  return keys;
}

/** Also on the disk. A process that reads the file sees either the old or the new keys. */
export function writeKeyFile(file: string, keys: readonly Buffer[]): void {
  const draft = `${file}.${process.pid}`;
  const { mode } = statSync(file);
  const content = `${keys.map((key) => key.toString("base64url")).join("\n")}\n`;
  writeFileSync(draft, content, { mode, flush: true });
  renameSync(draft, file);
  syncFolder(path.dirname(file));
}

/** If two processes start concurrently, one creates the file and both read it complete. */
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

export class KeyFileBusy extends Error {
  override readonly name = "KeyFileBusy";
}

/** Prevents a concurrent rotation from replacing the file without the key of this one. Throws KeyFileBusy. */
export async function lockKeyFile<Result>(file: string, change: () => Promise<Result>): Promise<Result> {
  const lock = `${file}.lock`;
  try {
    closeSync(openSync(lock, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new KeyFileBusy(
      `Another command is changing the encryption keys. If none is running, delete ${lock} and try again.`,
    );
  }
  try {
    return await change();
  } finally {
    unlinkSync(lock);
  }
}
