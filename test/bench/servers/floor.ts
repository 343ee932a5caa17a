import { hash, randomBytes } from "node:crypto";
import Sqlite from "better-sqlite3";
import Koa from "koa";
import bodyParser from "koa-bodyparser";
import { newId } from "../../../adapters/crypto/ids.ts";
import { listen } from "./listen.ts";

// The floor: the cost of Koa, a JSON body and SQLite on a new linkgate database, so with its tables and indexes. A redirect
// is a look-up and a grouped count. A link is a look-up of the token and two rows, the link and its event, as linkgate
// writes them. Nothing else is checked or written.
const { DATABASE = "", TOKEN = "", SLUG = "" } = process.env;
const database = new Sqlite(DATABASE);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");
const sha256 = (value: string) => hash("sha256", value, "base64url");
const group = createGroup();

type Row = Record<string, unknown>;
type Data = { link: Record<string, unknown> };
// New rows differ from these, which linkgate wrote, only in what has to differ.
const linkRow = database.prepare("select * from links where address = ?").get(SLUG) as Row;
const eventRow = database.prepare("select * from events where subject = ?").get(linkRow.id) as Row;
const { link: linkData } = JSON.parse(eventRow.data as string) as Data;

function prepareInsert(table: string, row: Row) {
  const columns = Object.keys(row);
  return database.prepare(
    `insert into ${table} (${columns.join(", ")}) values (${columns.map((column) => `@${column}`).join(", ")})`,
  );
}

prepareInsert("tokens", { id_hash: 0, kind: 0, payload: 0, expires_at: 0 }).run({
  id_hash: sha256(TOKEN),
  kind: "ClientCredentials",
  payload: "{}",
  expires_at: Date.now() + 3_600_000,
});
const findToken = database.prepare<[string], { expires_at: number }>(
  "select payload, expires_at from tokens where id_hash = ?",
);
const insertLink = prepareInsert("links", linkRow);
const insertEvent = prepareInsert("events", eventRow);
const findLink = database.prepare<[string], { id: string; url: string }>(
  "select id, url from links where address = ?",
);
const countClicks = database.prepare("update links set clicks = clicks + ? where id = ?");

let seq = eventRow.seq as number;
let clicks = new Map<string, number>();

function count(id: string) {
  if (clicks.size === 0)
    void group(() => {
      for (const [link, number] of clicks) countClicks.run(number, link);
      clicks = new Map();
    });
  clicks.set(id, (clicks.get(id) ?? 0) + 1);
}

async function createLink(url: string) {
  const id = newId("lnk");
  const slug = randomBytes(6).toString("base64url");
  const now = Date.now();
  const link = { ...linkData, id, slug, url, createdAt: now, updatedAt: now };
  const data = JSON.stringify({ link });
  const event = { id: newId("evt"), subject: id, data, created_at: now, seq: ++seq, hash: sha256(data) };
  await group(() => {
    insertLink.run({ ...linkRow, id, slug, address: slug, url, created_at: now, updated_at: now });
    insertEvent.run({ ...eventRow, ...event });
  });
  return link;
}

/** Commits the writes of one event-loop turn in one transaction, and answers each after it. */
function createGroup(): (write: () => void) => Promise<void> {
  let waiting: { write(): void; done(): void }[] = [];
  const commit = database.transaction((batch: typeof waiting) => {
    for (const { write } of batch) write();
  });
  return (write) =>
    new Promise((done) => {
      if (waiting.length === 0)
        setImmediate(() => {
          const batch = waiting;
          waiting = [];
          commit(batch);
          for (const { done } of batch) done();
        });
      waiting.push({ write, done });
    });
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
  ctx.status = 201;
  ctx.body = await createLink((ctx.request.body as { url: string }).url);
});

await listen(app.callback());
