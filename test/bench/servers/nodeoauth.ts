import { hash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import OAuth2Server from "@node-oauth/oauth2-server";
import Sqlite from "better-sqlite3";
import Koa from "koa";
import bodyParser from "koa-bodyparser";

// The reference for a lean library: @node-oauth/oauth2-server on Koa, cached statements, a commit per token.
const { DATABASE = "", SYNCHRONOUS = "FULL", CLIENT_ID = "", CLIENT_SECRET = "" } = process.env;
const database = new Sqlite(DATABASE);
database.pragma("journal_mode = WAL");
database.pragma(`synchronous = ${SYNCHRONOUS}`);
database.exec(`
  create table if not exists clients (id text primary key, secret_hash text not null);
  create table if not exists tokens (id_hash text primary key, client_id text not null, scope text, expires_at integer not null);
  create index if not exists tokens_expiry on tokens (expires_at);
`);
const sha256 = (value: string) => hash("sha256", value, "base64url");
database.prepare("insert or ignore into clients values (?, ?)").run(CLIENT_ID, sha256(CLIENT_SECRET));
const findClient = database.prepare<[string], { id: string; secret_hash: string }>(
  "select * from clients where id = ?",
);
const insertToken = database.prepare("insert into tokens values (?, ?, ?, ?)");

const model: OAuth2Server.ClientCredentialsModel = {
  async getClient(id, secret) {
    const row = findClient.get(id);
    return row && row.secret_hash === sha256(secret) && { id, grants: ["client_credentials"] };
  },
  getUserFromClient: async () => ({}),
  getAccessToken: async () => false,
  validateScope: async (_user, _client, scope) => scope ?? [],
  async saveToken(token, client, user) {
    const { accessToken, accessTokenExpiresAt = new Date(), scope = [] } = token;
    insertToken.run(sha256(accessToken), client.id, scope.join(" "), accessTokenExpiresAt.getTime());
    return { ...token, client, user };
  },
};

const oauth = new OAuth2Server({ model, accessTokenLifetime: 3600 });
const app = new Koa();
app.use(bodyParser());
app.use(async (ctx) => {
  const { method, query, body } = ctx.request;
  const request = new OAuth2Server.Request({
    method,
    query: query as Record<string, string>,
    body,
    headers: ctx.headers as Record<string, string>,
  });
  const response = new OAuth2Server.Response({});
  await oauth.token(request, response);
  ctx.status = response.status as number;
  ctx.set(response.headers as Record<string, string>);
  ctx.body = response.body;
});

const server = createServer(app.callback()).listen(0, "127.0.0.1");
await once(server, "listening");
console.log(`listening on ${(server.address() as AddressInfo).port}`);
process.on("SIGTERM", () => process.exit(0));
