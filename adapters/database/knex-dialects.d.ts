// Knex publishes types of its public API only. Custom dialects extend these classes (https://knexjs.org/guide/#client).
declare module "knex/lib/dialects/better-sqlite3/index.js" {
  import { Knex } from "knex";

  export default class BetterSqliteClient extends Knex.Client {
    connectionSettings: { filename: string; durable: boolean };
    transacting?: boolean;
    _formatBindings(bindings: unknown[]): unknown[];
    _query(connection: unknown, query: unknown): Promise<unknown>;
    transaction(...args: unknown[]): unknown;
  }
}

declare module "knex/lib/dialects/sqlite3/execution/sqlite-transaction.js" {
  export default class SqliteTransaction<Client, Connection> {
    constructor(client: Client, ...args: unknown[]);
    client: Client;
    acquireConnection<T>(
      config: { connection?: Connection } | undefined,
      run: (connection: Connection) => Promise<T>,
    ): Promise<T>;
    begin(connection: Connection): Promise<unknown>;
  }
}

declare module "knex/lib/dialects/postgres/index.js" {
  import { Knex } from "knex";

  export default class PgClient extends Knex.Client {
    _query(connection: unknown, query: unknown): Promise<unknown>;
  }
}
