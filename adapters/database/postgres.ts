import PgClient from "knex/lib/dialects/postgres/index.js";

type Query = { bindings?: unknown[] };

/** Knex's PostgreSQL dialect, extended to accept strings with NUL characters. */
export class PostgresClient extends PgClient {
  /**
   * Replaces NUL with U+FFFD. PostgreSQL cannot store NUL and rejects a statement that contains one, although an id with
   * one is merely unknown. Lone surrogates become the same replacement character when they are encoded.
   */
  override _query(connection: unknown, query: Query): Promise<unknown> {
    const bindings = query.bindings?.map((value) =>
      typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value,
    );
    return super._query(connection, bindings ? Object.assign(query, { bindings }) : query);
  }
}
