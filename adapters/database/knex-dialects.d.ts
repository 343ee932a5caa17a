// Knex publishes types of its public API only. Dialects extend these (https://knexjs.org/guide/#client).
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

declare module "knex/lib/client.js" {
  import { Knex } from "knex";

  /** A query, or a schema builder, which has a sequence. */
  export type Query = {
    _method?: string;
    sql?: string;
    _connection?: unknown;
    _sequence?: { method: string }[];
  };
  export type Runner = { run(): Promise<unknown> };

  export default class ServerClient extends Knex.Client {
    transacting?: boolean;
    _query(connection: unknown, query: unknown): Promise<unknown>;
    transaction(...args: unknown[]): unknown;
    pool?: { numUsed(): number; numFree(): number; numPendingAcquires(): number };
  }
}

declare module "knex/lib/dialects/postgres/index.js" {
  import ServerClient from "knex/lib/client.js";

  export default class PgClient extends ServerClient {
    _driver(): { types: { setTypeParser(oid: number, parse: (text: string) => unknown): void } };
    _acquireOnlyConnection(): Promise<object>;
  }
}

declare module "knex/lib/dialects/mysql2/index.js" {
  import ServerClient from "knex/lib/client.js";

  export default class Mysql2Client extends ServerClient {
    checkVersion(connection: object): Promise<unknown>;
  }
}
