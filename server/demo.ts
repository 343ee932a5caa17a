import { randomBytes } from "node:crypto";
import type { Storage } from "../adapters/index.ts";
import type { PublicUrls } from "../resources/access/resource-metadata.ts";
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

// By itself, curl is a known bot, whose clicks are counted apart.
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64)";

export function describeDemo(
  { clientId, clientSecret, username, password }: Demo,
  { base, mcp, short }: PublicUrls,
): string {
  const credentials = `-d client_id=${clientId} -d client_secret=${clientSecret}`;
  return `
Created a demo organization (Growth plan). Save these credentials; they won't be shown again:

  client id      ${clientId}
  client secret  ${clientSecret}
  username       ${username}
  password       ${password}

Sign in to the dashboard at ${base}/dashboard

Connect Claude Code, or see the dashboard's Connect page for other AI clients:

  claude mcp add --transport http linkgate ${mcp}

Get a token, create a link, follow it as a browser would, and revoke the token:

  TOKEN=$(curl -s ${base}/oauth/token -d grant_type=client_credentials ${credentials} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')

  curl -s ${base}/v1/links -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d '{"url":"https://example.com/hello","slug":"hello"}'

  curl -si -A "${BROWSER}" ${short}/hello

  curl -s -o /dev/null -w '%{http_code}\\n' ${base}/oauth/revoke -d "token=$TOKEN" ${credentials}
`;
}
