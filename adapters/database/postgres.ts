import PgClient from "knex/lib/dialects/postgres/index.js";

type Query = { bindings?: unknown[] };

/** Knex's PostgreSQL dialect, for values of any origin. */
export class PostgresClient extends PgClient {
  /**
   * PostgreSQL keeps no NUL and refuses a statement that brings one, although an id with one is only an unknown id. It
   * becomes what half a surrogate pair becomes on its way: the character for what cannot be told.
   */
  override _query(connection: unknown, query: Query): Promise<unknown> {
    const bindings = query.bindings?.map((value) =>
      typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value,
    );
    return super._query(connection, bindings ? Object.assign(query, { bindings }) : query);
  }
}
