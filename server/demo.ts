import { randomBytes } from "node:crypto";
import type { Storage } from "../adapters/index.ts";
import { SYSTEM } from "../resources/events/types.ts";
import { createPasswords } from "./credentials/passwords.ts";
import type { Settings } from "./settings/config.ts";

export type Demo = { clientId: string; clientSecret: string; username: string; password: string };

/**
 * Returns undefined in production, or unless the database is an empty SQLite. The credentials can't be read again.
 */
export async function createDemo(settings: Settings, storage: Storage): Promise<Demo | undefined> {
  if (settings.isProduction || storage.engine !== "sqlite") return undefined;
  if ((await storage.organizations.list()).length > 0) return undefined;
  const password = randomBytes(12).toString("base64url");
  const user = await storage.accounts.create("demo", await createPasswords().hash(password), SYSTEM);
  if (!user) return undefined;
  const { client } = await storage.organizations.create("demo", "growth", SYSTEM, user.id);
  return client && { ...client, username: user.username, password };
}
