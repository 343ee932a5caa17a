import knexFactory from "knex";
import bodyParser from "koa-bodyparser";
import type { Adapter, AdapterPayload } from "oidc-provider";
import { listen } from "./listen.ts";
import { createProvider } from "./provider.ts";

// oidc-provider as an application would use it: an adapter of plain Knex queries over better-sqlite3, with full durability.
// R finds the token through the library, and inserts a link.
const knex = knexFactory({
  client: "better-sqlite3",
  connection: { filename: process.env.DATABASE as string },
  useNullAsDefault: true,
});
await knex.raw("pragma journal_mode = WAL");
await knex.raw("pragma synchronous = FULL");
const INDEXED = ["grant_id", "uid", "user_code", "expires_at"];
await knex.raw(
  `create table payloads (model text, id text, payload text, ${INDEXED}, primary key (model, id))`,
);
for (const column of INDEXED) await knex.raw(`create index payloads_${column} on payloads (${column})`);
await knex.raw("create table links (id integer primary key, url text not null, created_at integer not null)");

type Row = { payload: string; expires_at: number | null };

/** What client credentials and introspection need of an adapter. */
class KnexAdapter implements Pick<Adapter, "upsert" | "find"> {
  readonly #model: string;

  constructor(model: string) {
    this.#model = model;
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number) {
    const row = {
      model: this.#model,
      id,
      payload: JSON.stringify(payload),
      grant_id: payload.grantId,
      uid: payload.uid,
      user_code: payload.userCode,
      expires_at: expiresIn ? Date.now() + expiresIn * 1000 : null,
    };
    await knex("payloads").insert(row).onConflict(["model", "id"]).merge();
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const row: Row | undefined = await knex("payloads").where({ model: this.#model, id }).first();
    if (!row || (row.expires_at !== null && row.expires_at < Date.now())) return undefined;
    return JSON.parse(row.payload);
  }
}

const provider = createProvider(KnexAdapter as never);
const parse = bodyParser();
provider.use(async (ctx, next) => {
  if (ctx.path !== "/v1/links") return next();
  const token = await provider.ClientCredentials.find(ctx.get("authorization").slice("Bearer ".length));
  if (!token) return ctx.throw(401);
  await parse(ctx, async () => {});
  const { url } = ctx.request.body as { url: string };
  const [link] = await knex<{ url: string; created_at: number }>("links")
    .insert({ url, created_at: Date.now() })
    .returning("*");
  ctx.status = 201;
  ctx.body = link;
});
await listen(provider.callback());
