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
await knex.schema.createTable("payloads", (table) => {
  table.string("model").notNullable();
  table.string("id").notNullable();
  table.text("payload").notNullable();
  table.string("grant_id").index();
  table.string("uid").index();
  table.string("user_code").index();
  table.bigint("expires_at").index();
  table.bigint("consumed_at");
  table.primary(["model", "id"]);
});
await knex.schema.createTable("links", (table) => {
  table.increments("id");
  table.text("url").notNullable();
  table.bigint("created_at").notNullable();
});

type Row = { payload: string; consumed_at: number | null; expires_at: number | null };

class KnexAdapter implements Adapter {
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

  find = (id: string) => this.#findBy({ id });
  findByUid = (uid: string) => this.#findBy({ uid });
  findByUserCode = (user_code: string) => this.#findBy({ user_code });

  async #findBy(key: Record<string, string>): Promise<AdapterPayload | undefined> {
    const row: Row | undefined = await knex("payloads")
      .where({ model: this.#model, ...key })
      .first();
    if (!row || (row.expires_at !== null && row.expires_at < Date.now())) return undefined;
    const consumed = row.consumed_at ? { consumed: row.consumed_at } : {};
    return { ...JSON.parse(row.payload), ...consumed };
  }

  async consume(id: string) {
    await knex("payloads")
      .where({ model: this.#model, id })
      .update({ consumed_at: Math.floor(Date.now() / 1000) });
  }

  async destroy(id: string) {
    await knex("payloads").where({ model: this.#model, id }).delete();
  }

  async revokeByGrantId(grant_id: string) {
    await knex("payloads").where({ grant_id }).delete();
  }
}

const provider = createProvider(KnexAdapter);
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
