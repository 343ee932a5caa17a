import { isIPv6 } from "node:net";
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
export function describeParts({ base, api, mcp }: PublicUrls, port: number, settings: Settings): string {
  const address = addressOf(settings.HOST, port);
  const isBase = [address, address.replace("127.0.0.1", "localhost")].includes(base);
  const rows = [
    ...(isBase ? [] : [["Address", url(address)]]),
    ...(settings.INTROSPECTION_URL ? [] : [["Dashboard", url(`${base}/dashboard`)]]),
    ["API", url(api)],
    ["MCP", url(mcp)],
    ["Docs", url(`${base}/docs`)],
    ["Database", databaseOf(settings.DATABASE_URL)],
  ];
  const lines = rows.map(([name = "", place]) => `  ${strong(name.padEnd(9))}  ${place}\n`);
  return `${strong(`linkgate ${VERSION}`)}\n\n${lines.join("")}`;
}

/** Behind a proxy, the server doesn't listen at its base URL. */
function addressOf(host: string, port: number): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
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

/** Returns the rest of the first page: credentials, and three next steps. Lines fit in 80 columns. */
export function describeDemo(
  { clientId, clientSecret, username, password }: Demo,
  { base, mcp, short }: PublicUrls,
): string {
  return `${strong("Created a demo organization (Growth plan).")}
Save these credentials; they won't be shown again:

  client id      ${clientId}
  client secret  ${secret(clientSecret)}
  username       ${username}
  password       ${secret(password)}

${strong("1. Sign in")} to the dashboard at ${url(`${base}/dashboard`)}

${strong("2. Connect Claude Code")}, or see the dashboard's Connect page for other clients:

  claude mcp add --transport http linkgate ${mcp}

${strong("3. Try the API")}: get a token, create a link, follow it, and revoke the token:

  export CLIENT_ID=${clientId} \\
    CLIENT_SECRET=${secret(clientSecret)}

  RESPONSE=$(curl -sS --fail-with-body ${base}/oauth/token \\
    -d grant_type=client_credentials \\
    -d client_id="$CLIENT_ID" -d client_secret="$CLIENT_SECRET") ||
    echo "$RESPONSE"
  TOKEN=$(echo "$RESPONSE" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')

  curl -sS ${base}/v1/links -H "Authorization: Bearer $TOKEN" \\
    -H "Content-Type: application/json" -w '\\n' \\
    -d '{"url": "https://example.com/hello", "slug": "hello"}'

  curl -sS -o /dev/null -w '%{http_code} %{redirect_url}\\n' \\
    -A "${BROWSER}" ${short}/hello

  curl -sS -o /dev/null -w '%{http_code}\\n' \\
    ${base}/oauth/revoke -d token="$TOKEN" \\
    -d client_id="$CLIENT_ID" -d client_secret="$CLIENT_SECRET"
`;
}
