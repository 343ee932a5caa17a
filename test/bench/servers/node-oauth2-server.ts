import { hash } from "node:crypto";
import OAuth2Server from "@node-oauth/oauth2-server";
import Sqlite from "better-sqlite3";
import Koa from "koa";
import bodyParser from "koa-bodyparser";
import { listen } from "./listen.ts";

// @node-oauth/oauth2-server as an application that cares for speed would use it: on Koa, with cached statements and full
// durability. R authenticates with the library, and inserts a link.
const { DATABASE = "", CLIENT_ID = "", CLIENT_SECRET = "" } = process.env;
const database = new Sqlite(DATABASE);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");
database.exec(`
  create table clients (id text primary key, secret_hash text not null);
  create table tokens (id_hash text primary key, client_id text not null, scope text, expires_at integer not null);
  create index tokens_expiry on tokens (expires_at);
  create table links (id integer primary key, url text not null, created_at integer not null);
`);
const sha256 = (value: string) => hash("sha256", value, "base64url");
database.prepare("insert into clients values (?, ?)").run(CLIENT_ID, sha256(CLIENT_SECRET));
const findClient = database.prepare<[string], { id: string; secret_hash: string }>(
  "select * from clients where id = ?",
);
const insertToken = database.prepare("insert into tokens values (?, ?, ?, ?)");
type RequestOptions = ConstructorParameters<typeof OAuth2Server.Request>[0];
type TokenRow = { client_id: string; scope: string; expires_at: number };
const findToken = database.prepare<[string], TokenRow>("select * from tokens where id_hash = ?");
const insertLink = database.prepare("insert into links (url, created_at) values (?, ?) returning *");

const GRANTS = ["client_credentials"];
const model: OAuth2Server.ClientCredentialsModel = {
  async getClient(id, secret) {
    const row = findClient.get(id);
    return row && row.secret_hash === sha256(secret) && { id, grants: GRANTS };
  },
  getUserFromClient: async () => ({}),
  async getAccessToken(accessToken) {
    const row = findToken.get(sha256(accessToken));
    if (!row) return false;
    return {
      accessToken,
      accessTokenExpiresAt: new Date(row.expires_at),
      scope: row.scope.split(" "),
      client: { id: row.client_id, grants: GRANTS },
      user: {},
    };
  },
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
  const { method, query, body, headers } = ctx.request;
  const request = new OAuth2Server.Request({ method, query, body, headers } as RequestOptions);
  const response = new OAuth2Server.Response({});
  if (ctx.path === "/v1/links") {
    await oauth.authenticate(request, response);
    ctx.status = 201;
    ctx.body = insertLink.get((body as { url: string }).url, Date.now());
    return;
  }
  await oauth.token(request, response);
  ctx.status = response.status as number;
  ctx.set(response.headers as Record<string, string>);
  ctx.body = response.body;
});

await listen(app.callback());
