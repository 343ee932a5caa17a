import path from "node:path";
import { styleText } from "node:util";
import { engineOf, sqliteFile } from "../../adapters/database/engine.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { Demo } from "../demo.ts";
import type { Settings } from "../settings/config.ts";
import { VERSION } from "../version.ts";

// By itself, curl is a known bot, whose clicks are counted apart.
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64)";

// Without colors unless stdout is a terminal; see `styleText`.
const strong = (text: string) => styleText("bold", text);
const secret = (text: string) => styleText("yellow", text);
const url = (text: string) => styleText("cyan", text);

/** Returns what a start prints on a terminal: where each part of the service is. */
export function describeParts({ base, api, mcp }: PublicUrls, settings: Settings): string {
  const rows = [
    ...(settings.INTROSPECTION_URL ? [] : [["dashboard", url(`${base}/dashboard`)]]),
    ["API", url(api)],
    ["MCP", url(mcp)],
    ["documentation", url(`${base}/docs`)],
    ["database", databaseOf(settings.DATABASE_URL)],
  ];
  const lines = rows.map(([name = "", place]) => `  ${name.padEnd(13)}  ${place}`);
  return `${strong(`linkgate ${VERSION}`)}\n\n${lines.join("\n")}\n`;
}

/** Without the credentials in the URL. */
function databaseOf(databaseUrl: string): string {
  if (engineOf(databaseUrl) === "sqlite") return shortestPathOf(sqliteFile(databaseUrl));
  const { protocol, host, pathname } = new URL(databaseUrl);
  return `${protocol}//${host}${pathname}`;
}

/** Relative to the working directory, if the file is below it. */
function shortestPathOf(file: string): string {
  const relative = path.relative("", file);
  return relative.startsWith("..") ? file : relative;
}

/** Returns the rest of the first page: credentials, and three next steps. */
export function describeDemo(
  { clientId, clientSecret, username, password }: Demo,
  { base, mcp, short }: PublicUrls,
): string {
  const credentials = `-d client_id=${clientId} -d client_secret=${clientSecret}`;
  return `
${strong("Created a demo organization (Growth plan). Save these credentials; they won't be shown again:")}

  client id      ${clientId}
  client secret  ${secret(clientSecret)}
  username       ${username}
  password       ${secret(password)}

${strong("1. Sign in")} to the dashboard at ${url(`${base}/dashboard`)}

${strong("2. Connect Claude Code")}, or see the dashboard's Connect page for other AI clients:

  claude mcp add --transport http linkgate ${mcp}

${strong("3. Get a token")}, create a link, follow it as a browser would, and revoke the token:

  TOKEN=$(curl -s ${base}/oauth/token -d grant_type=client_credentials ${credentials} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')

  curl -s ${base}/v1/links -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d '{"url":"https://example.com/hello","slug":"hello"}'

  curl -si -A "${BROWSER}" ${short}/hello

  curl -s -o /dev/null -w '%{http_code}\\n' ${base}/oauth/revoke -d "token=$TOKEN" ${credentials}
`;
}
