import { statSync } from "node:fs";
import { sqliteFile } from "../../adapters/database/engine.ts";
import type { Settings } from "../config.ts";
import { StartupError } from "../startup-errors.ts";
import { keyFileOf } from "./encryption-keys.ts";

// Processes that start together on an empty folder see each other's new files.
const NEW_MS = 60_000;

type DatabaseSettings = Pick<Settings, "DATABASE_URL" | "ENCRYPTION_KEY" | "ENCRYPTION_KEY_FILE">;

/**
 * Rejects an empty SQLite database next to a key that was generated earlier: the database that it belongs to is lost, and
 * would be replaced without notice.
 * @throws StartupError
 */
export function rejectLostDatabase(settings: DatabaseSettings): void {
  const { DATABASE_URL, ENCRYPTION_KEY_FILE } = settings;
  const keyFile = ENCRYPTION_KEY_FILE ? undefined : keyFileOf(settings);
  if (!keyFile || !DATABASE_URL.startsWith("sqlite:")) return;
  const file = sqliteFile(DATABASE_URL);
  const key = statSync(keyFile, { throwIfNoEntry: false });
  if (!key || Date.now() - key.mtimeMs < NEW_MS) return;
  if (statSync(file, { throwIfNoEntry: false })?.size) return;
  throw new StartupError(
    `${file} is missing or empty, but ${keyFile} belongs to an earlier database. Restore that database, or remove the key to start with an empty one.`,
  );
}
