import { statfs } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../../adapters/database/engine.ts";
import { openReplica } from "../../../adapters/database/replica.ts";
import { encryptionKeys } from "../../keys/encryption-keys.ts";
import { describeStartupError } from "../../startup-errors.ts";
import type { CommandContext } from "../command.ts";

const ENGINE_NAMES: Record<Engine, string> = {
  sqlite: "SQLite",
  postgres: "PostgreSQL",
  mysql: "MySQL or MariaDB",
};

const MIN_FREE_BYTES = 1_000_000_000;
// On a busy primary, the replica reaches the first position that it is compared with in the next check, or a later one.
const REPLICA_MS = 5_000;

/** Connects to the database. */
export async function checkDatabase({ storage }: CommandContext): Promise<string> {
  await storage.pendingMigrations();
  return `connected (${ENGINE_NAMES[storage.engine]})`;
}

/** Compares the replica with the primary. */
export async function checkReplica({ settings }: CommandContext): Promise<string> {
  const { DATABASE_REPLICA_URL: url = "", DATABASE_URL } = settings;
  const replica = openReplica(url, DATABASE_URL);
  try {
    const used = new Promise<void>((resolve) => replica.onChange(() => resolve()));
    await Promise.race([used, sleep(REPLICA_MS)]);
    const { isInUse, lagMs, problem } = replica.state();
    if (isInUse) return `connected, at most ${(lagMs / 1000).toFixed(1)} s behind`;
    const reason = describeStartupError(problem, url)?.replace("DATABASE_URL", "DATABASE_REPLICA_URL");
    throw new Error(`${reason ?? `DATABASE_REPLICA_URL: ${problem?.message}`}. Redirects read the primary`);
  } finally {
    await replica.close();
  }
}

/** Compares the schema with the one that this version needs. */
export async function checkMigrations({ storage }: CommandContext): Promise<string> {
  const newer = await storage.newerMigrations();
  const pending = await storage.pendingMigrations();
  if (pending.length)
    throw new Error(`pending: ${pending.join(", ")} (run "linkgate migrate" or start the server)`);
  return newer.length ? `newer than this version, which can use it: ${newer.join(", ")}` : "up to date";
}

/** Decrypts the stored keys. */
export async function checkKeys({ storage }: CommandContext): Promise<string> {
  if ((await storage.pendingMigrations()).length > 0)
    throw new Error("not checked: apply the pending migrations first");
  return (await storage.keys.check()) ? "decrypted" : "none yet; the first start creates them";
}

/** Counts the values that need an older encryption key. */
export async function checkEncryption({ storage, settings }: CommandContext): Promise<string> {
  const { length } = encryptionKeys(settings);
  if (length === 1) return "one key";
  if ((await storage.pendingMigrations()).length > 0) return `${length} keys`;
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
