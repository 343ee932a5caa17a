import { randomBytes } from "node:crypto";
import type { Storage } from "../adapters/index.ts";
import { SYSTEM } from "../resources/events/types.ts";
import { createPasswords } from "./credentials/passwords.ts";
import type { Settings } from "./settings/config.ts";
import { toStartupError } from "./startup-errors.ts";

export type Demo = { clientId: string; clientSecret: string; username: string; password: string };

/**
 * Creates an organization and a user if the database is an empty SQLite, but not in production or on a resource server.
 * Once the ports are open, because the credentials can't be read again. Throws StartupError.
 */
export async function createDemo(settings: Settings, storage: Storage): Promise<Demo | undefined> {
  if (settings.isProduction || settings.INTROSPECTION_URL || storage.engine !== "sqlite") return undefined;
  try {
    return await createIfEmpty(storage);
  } catch (error) {
    throw toStartupError(error, settings.DATABASE_URL);
  }
}

async function createIfEmpty(storage: Storage): Promise<Demo | undefined> {
  if ((await storage.organizations.list()).length > 0) return undefined;
  const password = randomBytes(12).toString("base64url");
  const user = await storage.accounts.create("demo", await createPasswords().hash(password), SYSTEM);
  if (!user) return undefined;
  const { client } = await storage.organizations.create("demo", "growth", SYSTEM, user.id);
  return client && { ...client, username: user.username, password };
}
