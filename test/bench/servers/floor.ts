import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Sqlite from "better-sqlite3";
import Koa from "koa";
import bodyParser from "koa-bodyparser";
import { createGroup } from "./group.ts";

// The floor: the cost of Koa, a JSON body and SQLite. One lookup, one row or count, one response.
const { DATABASE = "", SYNCHRONOUS = "FULL", TOKEN = "", SLUG = "" } = process.env;
const database = new Sqlite(DATABASE);
database.pragma("journal_mode = WAL");
database.pragma(`synchronous = ${SYNCHRONOUS}`);
database.exec(`
  create table if not exists tokens (id_hash text primary key, organization_id text not null, expires_at integer not null);
  create table if not exists links (
    id text primary key, organization_id text not null, slug text not null unique, url text not null,
    clicks integer not null default 0, created_at integer not null
  );
  create index if not exists links_list on links (organization_id, id);
`);
const sha256 = (value: string) => hash("sha256", value, "base64url");
database
  .prepare("insert or ignore into tokens values (?, ?, ?)")
  .run(sha256(TOKEN), "org_1", Date.now() + 3_600_000);
database
  .prepare("insert or ignore into links (id, organization_id, slug, url, created_at) values (?, ?, ?, ?, ?)")
  .run("lnk_bench", "org_1", SLUG, "https://example.com/bench", Date.now());

const findToken = database.prepare<[string], { organization_id: string; expires_at: number }>(
  "select organization_id, expires_at from tokens where id_hash = ?",
);
const insertLink = database.prepare(
  "insert into links (id, organization_id, slug, url, created_at) values (?, ?, ?, ?, ?)",
);
const findLink = database.prepare<[string], { id: string; url: string }>(
  "select id, url from links where slug = ?",
);
const countClicks = database.prepare("update links set clicks = clicks + ? where id = ?");
const group = createGroup(database);

let clicks = new Map<string, number>();
function count(id: string) {
  if (clicks.size === 0) {
    void group(() => {
      for (const [link, number] of clicks) countClicks.run(number, link);
      clicks = new Map();
    });
  }
  clicks.set(id, (clicks.get(id) ?? 0) + 1);
}

const app = new Koa();
app.use(async (ctx, next) => {
  if (ctx.method !== "GET") return next();
  const link = findLink.get(ctx.path.slice(1));
  if (!link) return;
  count(link.id);
  ctx.status = 302;
  ctx.set("Location", link.url);
  ctx.body = "";
});
app.use(bodyParser());
app.use(async (ctx) => {
  const token = findToken.get(sha256(ctx.get("authorization").slice(7)));
  if (!token || token.expires_at < Date.now()) return;
  const { url } = ctx.request.body as { url: string };
  const id = `lnk_${randomBytes(16).toString("hex")}`;
  const slug = randomBytes(6).toString("base64url");
  const now = Date.now();
  await group(() => insertLink.run(id, token.organization_id, slug, url, now));
  ctx.status = 201;
  ctx.body = { id, slug, url, clicks: 0, created_at: new Date(now).toISOString() };
});

const server = createServer(app.callback()).listen(0, "127.0.0.1");
await once(server, "listening");
console.log(`listening on ${(server.address() as AddressInfo).port}`);
process.on("SIGTERM", () => process.exit(0));
