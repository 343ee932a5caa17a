import { createServer } from "node:http";
import { oauthProvider } from "@better-auth/oauth-provider";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";
import Sqlite from "better-sqlite3";

// better-auth with its OAuth provider, configured for opaque tokens as its documentation says, on better-sqlite3 with full
// durability. R asks its introspection in the same process, and inserts a link.
const { DATABASE, CLIENT_ID, CLIENT_SECRET } = process.env;
const SCOPES = ["links:write", "webhooks:write"];
const PATHS = {
  "/oauth/token": "/api/auth/oauth2/token",
  "/oauth/introspect": "/api/auth/oauth2/introspect",
};

const database = new Sqlite(DATABASE);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");

const options = {
  baseURL: "http://localhost",
  secret: CLIENT_SECRET,
  database,
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { level: "error" },
  plugins: [
    oauthProvider({
      loginPage: "/sign-in",
      consentPage: "/consent",
      disableJwtPlugin: true,
      scopes: SCOPES,
      clientPrivileges: () => true,
      generateClientId: () => CLIENT_ID,
      generateClientSecret: () => CLIENT_SECRET,
      silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true },
    }),
  ],
};
await (await getMigrations(options)).runMigrations();
const auth = betterAuth(options);
const { headers: signedUp } = await auth.api.signUpEmail({
  body: { name: "Bench", email: "bench@example.com", password: CLIENT_SECRET },
  returnHeaders: true,
});
await auth.api.adminCreateOAuthClient({
  headers: { cookie: signedUp.getSetCookie()[0].split(";")[0] },
  body: {
    client_name: "bench",
    redirect_uris: ["https://app.example.com/callback"],
    grant_types: ["client_credentials"],
    client_credentials_scopes: SCOPES,
    response_types: [],
    token_endpoint_auth_method: "client_secret_post",
    scope: SCOPES.join(" "),
  },
});

database.exec("create table links (id integer primary key, url text not null, created_at integer not null)");
const insertLink = database.prepare("insert into links (url, created_at) values (?, ?) returning *");

async function createLink(request, response) {
  const token = request.headers.authorization?.slice("Bearer ".length);
  const credentials = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET };
  const { active } = await auth.api.oauth2Introspect({ body: { token, ...credentials } });
  if (!active) return response.writeHead(401).end();
  let body = "";
  for await (const chunk of request) body += chunk;
  const answer = JSON.stringify(insertLink.get(JSON.parse(body).url, Date.now()));
  response
    .writeHead(201, { "Content-Type": "application/json", "Content-Length": answer.length })
    .end(answer);
}

const handler = toNodeHandler(auth);
const server = createServer((request, response) => {
  if (request.url === "/v1/links") return createLink(request, response);
  request.url = PATHS[request.url] ?? request.url;
  return handler(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
process.on("SIGTERM", () => process.exit(0));
