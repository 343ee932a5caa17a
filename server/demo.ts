import { randomBytes } from "node:crypto";
import type { Storage } from "../adapters/index.ts";
import { SYSTEM } from "../resources/events.ts";
import type { Addresses } from "../resources/metadata.ts";
import type { Settings } from "./config.ts";
import { createPasswords } from "./passwords.ts";

/** What a first start makes, so that there is something to try. */
export type Demo = { clientId: string; clientSecret: string; username: string; password: string };

/**
 * On an empty embedded database, outside production: the organization `demo` on Growth with a user `demo`. Nothing
 * otherwise; the credentials are known this once.
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

/** The credentials, where to sign in, and four commands to paste. */
export function describeDemo(
  { clientId, clientSecret, username, password }: Demo,
  { base, short }: Addresses,
): string {
  const credentials = `-d client_id=${clientId} -d client_secret=${clientSecret}`;
  return `
The database was empty, so there is now an organization "demo" on the Growth plan. Its credentials, shown this once:

  client id      ${clientId}
  client secret  ${clientSecret}
  username       ${username}
  password       ${password}

Sign in to the dashboard at ${base}/dashboard

Paste these, one after the other:

  TOKEN=$(curl -s ${base}/oauth/token -d grant_type=client_credentials ${credentials} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')

  curl -s ${base}/v1/links -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d '{"url":"https://example.com/hello","slug":"hello"}'

  curl -si ${short}/hello

  curl -s -o /dev/null -w '%{http_code}\\n' ${base}/oauth/revoke -d "token=$TOKEN" ${credentials}
`;
}
