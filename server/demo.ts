import { randomBytes } from "node:crypto";
import type { Storage } from "../adapters/index.ts";
import type { PublicUrls } from "../resources/access/resource-metadata.ts";
import { SYSTEM } from "../resources/events/types.ts";
import { createPasswords } from "./credentials/passwords.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings/config.ts";
import { toStartupError } from "./startup-errors.ts";
import { UnwritableOutput } from "./terminal/write-out.ts";

export type Demo = { clientId: string; clientSecret: string; username: string; password: string };
/** Throws UnwritableOutput. */
export type ShowDemo = (demo: Demo, urls: PublicUrls, port: number) => void;

/**
 * Creates an organization and a user if the database is an empty SQLite, but not in production or on a resource server.
 * Once the ports are open, because the credentials can't be read again. If `show` fails, deletes both, so the next start
 * creates them. Throws StartupError.
 */
export async function createDemo(
  settings: Settings,
  storage: Storage,
  log: Log,
  show: (demo: Demo) => void,
): Promise<void> {
  if (settings.isProduction || settings.INTROSPECTION_URL || storage.engine !== "sqlite") return;
  try {
    const demo = await createIfEmpty(storage);
    if (!demo) return;
    try {
      show(demo);
    } catch (error) {
      if (!(error instanceof UnwritableOutput)) throw error;
      await storage.accountDeletions.deleteAccount(demo.userId, SYSTEM);
      log.warn({ code: error.code }, "no demo organization was created: its credentials can't be shown");
    }
  } catch (error) {
    throw toStartupError(error, settings.DATABASE_URL);
  }
}

async function createIfEmpty(storage: Storage): Promise<(Demo & { userId: string }) | undefined> {
  if ((await storage.organizations.list()).length > 0) return undefined;
  const password = randomBytes(12).toString("base64url");
  const user = await storage.accounts.create("demo", await createPasswords().hash(password), SYSTEM);
  if (!user) return undefined;
  const { client } = await storage.organizations.create("demo", "growth", SYSTEM, user.id);
  return client && { ...client, userId: user.id, username: user.username, password };
}
