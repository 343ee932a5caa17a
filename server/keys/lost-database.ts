import { existsSync } from "node:fs";
import { isMissing, sqliteFile } from "../../adapters/database/engine.ts";
import type { Settings } from "../settings/config.ts";
import { StartupError } from "../startup-errors.ts";
import { keyFileOf } from "./encryption-keys.ts";

type DatabaseSettings = Pick<Settings, "DATABASE_URL" | "ENCRYPTION_KEY" | "ENCRYPTION_KEY_FILE">;

/**
 * Rejects an empty SQLite database next to a generated key, which is created after its database: that database is lost, and
 * would be replaced without notice.
 * @throws StartupError
 */
export function rejectLostDatabase(settings: DatabaseSettings): void {
  const { DATABASE_URL, ENCRYPTION_KEY_FILE } = settings;
  const keyFile = ENCRYPTION_KEY_FILE ? undefined : keyFileOf(settings);
  if (!keyFile) return;
  // In this order: another process that starts creates the database first.
  if (!existsSync(keyFile) || !isMissing(DATABASE_URL)) return;
  throw new StartupError(
    `${sqliteFile(DATABASE_URL)} is missing or empty, but ${keyFile} belongs to another database. Restore that database, or move the key away to start with an empty one.`,
  );
}
