import { statfs } from "node:fs/promises";
import path from "node:path";
import { type Engine, isMissing } from "../../../adapters/database/engine.ts";
import { CREATE_SEARCH_INDEX } from "../../../adapters/database/search-index.ts";
import { encryptionKeys, keyFileOf, rejectLostKey } from "../../keys/encryption-keys.ts";
import { describeMissing } from "../../startup-errors.ts";
import type { CommandContext } from "../command.ts";

const ENGINE_NAMES: Record<Engine, string> = {
  sqlite: "SQLite",
  postgres: "PostgreSQL",
  mysql: "MySQL or MariaDB",
};

const MIN_FREE_BYTES = 1_000_000_000;

/** Connects to the database. */
export async function checkDatabase({ storage, settings }: CommandContext): Promise<string> {
  if (isMissing(settings.DATABASE_URL)) throw new Error(describeMissing(settings.DATABASE_URL));
  await storage.pendingMigrations();
  return `connected (${ENGINE_NAMES[storage.engine]})`;
}

/** Compares the schema with the one that this version needs. */
export async function checkMigrations({ storage }: CommandContext): Promise<string> {
  const newer = await storage.newerMigrations();
  const pending = await storage.pendingMigrations();
  if (pending.length)
    throw new Error(`pending: ${pending.join(", ")} (run "linkgate migrate" or start the server)`);
  return newer.length ? `newer than this version, which can use it: ${newer.join(", ")}` : "up to date";
}

/** Finds out whether PostgreSQL has the index for searches, which migrations create if they may. */
export async function checkSearchIndex({ storage }: CommandContext): Promise<string> {
  if (await storage.hasSearchIndex()) return "exists";
  const statements = CREATE_SEARCH_INDEX.join("; ");
  return `missing, so searches compare all links of an organization. To create it, run: ${statements}`;
}

/** Decrypts the stored keys. */
export async function checkKeys({ storage, settings }: CommandContext): Promise<string> {
  if ((await storage.pendingMigrations()).length > 0)
    throw new Error("not checked: apply the pending migrations first");
  if (encryptionKeys(settings).length === 0) return "not checked: there is no encryption key";
  return (await storage.keys.check()) ? "decrypted" : "none yet; the first start creates them";
}

/** Counts the values that need an older encryption key. */
export async function checkEncryption({ storage, settings }: CommandContext): Promise<string> {
  const { length } = encryptionKeys(settings);
  if (length === 1) return "one key";
  if ((await storage.pendingMigrations()).length > 0) return `${length} keys`;
  await rejectLostKey(settings, storage);
  if (length === 0) return `none yet; the first start creates ${keyFileOf(settings)}`;
  const outdated = await storage.countOutdatedCiphertexts();
  if (outdated > 0) return `${length} keys; ${outdated} stored values still need an older one`;
  return `${length} keys; the older ones can be removed (run "linkgate keys prune", or change ENCRYPTION_KEY)`;
}

/** Finds out how much space is left for a SQLite database. */
export async function checkDisk({ settings }: CommandContext): Promise<string> {
  const file = settings.DATABASE_URL.slice("sqlite:".length).split("?", 1)[0] as string;
  const folder = path.dirname(path.resolve(file));
  const { bavail, bsize } = await statfs(folder);
  const free = `${((bavail * bsize) / 1_000_000_000).toFixed(1)} GB free in ${folder}`;
  if (bavail * bsize < MIN_FREE_BYTES)
    throw new Error(`only ${free}: make room, or writes will fail with 503 when the disk is full`);
  return free;
}
