import { statSync } from "node:fs";
import path from "node:path";
import type { Knex } from "knex";
import { MAX_TIMER_MS } from "./limited-client.ts";
import { MysqlClient } from "./mysql.ts";
import { PostgresClient } from "./postgres.ts";
import { SqliteClient } from "./sqlite/client.ts";
import type { StatementObserver } from "./statement-observer.ts";

export type DatabaseOptions = {
  /** How long a statement or transaction may take on a server: 10 s by default, as long as it takes if infinite. */
  timeoutMs?: number | undefined;
  observer?: StatementObserver | undefined;
};

/** This file, `postgres.ts`, `mysql.ts`, `sqlite/` and `migrations/` handle the differences. */
export type Engine = "sqlite" | "postgres" | "mysql";

/** Returns the engine of a `DATABASE_URL`. @throws TypeError that names the accepted forms */
export function engineOf(url: string): Engine {
  if (url.startsWith("sqlite:")) return "sqlite";
  if (/^postgres(ql)?:\/\//.test(url)) return "postgres";
  if (/^(mysql|mariadb):\/\//.test(url)) return "mysql";
  throw new TypeError("must start with sqlite:, postgres:// or mysql://");
}

export function sqliteFile(url: string): string {
  return path.resolve(url.slice("sqlite:".length).split("?", 1)[0] as string);
}

/** Returns whether a URL is that of a SQLite database that doesn't exist. An empty file is one without content. */
export function isMissing(url: string): boolean {
  return engineOf(url) === "sqlite" && !statSync(sqliteFile(url), { throwIfNoEntry: false })?.size;
}

// Per process. PostgreSQL allows a hundred connections in total by default.
const CONNECTIONS = 10;
const CONNECT_TIMEOUT_MS = 5000;
const TIMEOUT_MS = 10_000;

export function knexConfig(
  url: string,
  { timeoutMs = TIMEOUT_MS, observer }: DatabaseOptions = {},
): Knex.Config {
  // Errors contain the statement without its values, which may be secrets.
  const acquireConnectionTimeout = Math.min(timeoutMs, MAX_TIMER_MS);
  const common = { compileSqlOnError: false, acquireConnectionTimeout, timeoutMs, observer };
  const pool = { min: 0, max: CONNECTIONS };
  const connectTimeoutMs = Math.min(timeoutMs, CONNECT_TIMEOUT_MS);
  switch (engineOf(url)) {
    case "sqlite":
      return {
        ...common,
        client: SqliteClient as unknown as typeof Knex.Client,
        connection: {
          filename: sqliteFile(url),
          // `normal` is faster, but may lose the last commits on power loss.
          durable: !/\?synchronous=normal$/i.test(url),
        } as Knex.Sqlite3ConnectionConfig,
        useNullAsDefault: true,
      };
    case "postgres":
      return {
        ...common,
        client: PostgresClient as unknown as typeof Knex.Client,
        connection: { connectionString: url, connectionTimeoutMillis: connectTimeoutMs, keepAlive: true },
        pool: { ...pool, max: CONNECTIONS - 1 }, // another is for requests to cancel
      };
    case "mysql":
      return {
        ...common,
        client: MysqlClient as unknown as typeof Knex.Client,
        connection: {
          uri: url.replace(/^mariadb:/, "mysql:"),
          charset: "utf8mb4",
          timezone: "Z", // that of the session
          connectTimeout: connectTimeoutMs,
        } as Knex.MySql2ConnectionConfig,
        pool,
      };
  }
}

/** Returns SQL that tests whether a column contains a text, byte by byte. By default, both are bindings. */
export function containsText(engine: Engine, column = "??", text = "?"): string {
  return `${engine === "postgres" ? "strpos" : "instr"}(${column}, ${text}) > 0`;
}

/** The values of a primary key. */
export type Key = (string | number)[];

/** Returns SQL for the rows after a key, which reads a range of its index, and the bindings. */
export function behind(engine: Engine, key: readonly string[], last: Key): [sql: string, bindings: Key] {
  if (engine === "mysql") {
    // MariaDB reads the whole index for row values, but only a range of it for this.
    const alternatives = key.map((_, index) => `(${"?? = ? and ".repeat(index)}?? > ?)`);
    const columns = key.map((column, index) => [column, last[index] as string | number]);
    return [
      `(${alternatives.join(" or ")})`,
      columns.flatMap((_, index) => columns.slice(0, index + 1).flat()),
    ];
  }
  const list = (mark: string) => key.map(() => mark).join(", ");
  return [`(${list("??")}) > (${list("?")})`, [...key, ...last]];
}

/** Returns the rows of a raw query, which each driver returns in another form. */
export function rowsOf<Row>(result: unknown): Row[] {
  if (!Array.isArray(result)) return (result as { rows: Row[] }).rows;
  return (Array.isArray(result[0]) ? result[0] : result) as Row[];
}

/** Returns SQL for the value of a column that an upsert tried to insert, for use in its update. */
export function insertedValue(engine: Engine, column: string): string {
  return engine === "mysql" ? `values(${column})` : `excluded.${column}`;
}

/**
 * Returns SQL for a table `added` of the rows in a JSON array, the parameter `:rows`: one for each value would take longer
 * to pass than to store.
 */
export function rowsOfJson(engine: Engine, columns: Record<string, "text" | "bigint">): string {
  const listOf = (column: (name: string, type: "text" | "bigint") => string) =>
    Object.entries(columns)
      .map(([name, type]) => column(name, type))
      .join(", ");
  switch (engine) {
    case "sqlite":
      return `(select ${listOf((name) => `value ->> '${name}' as ${name}`)} from json_each(:rows)) as added`;
    case "postgres":
      return `json_to_recordset(:rows) as added(${listOf((name, type) => `${name} ${type}`)})`;
    case "mysql": {
      const typeOf = { text: "varchar(255)", bigint: "bigint" };
      const list = listOf((name, type) => `${name} ${typeOf[type]} path '$.${name}'`);
      return `json_table(:rows, '$[*]' columns (${list})) as added`;
    }
  }
}

/** MariaDB has no partial indexes: there, a generated column has the webhook's ID while a delivery is pending. */
export function pendingWebhook(engine: Engine): { column: string; isPending: string } {
  return engine === "mysql"
    ? { column: "pending_webhook_id", isPending: "pending_webhook_id is not null" }
    : { column: "webhook_id", isPending: "due_at is not null" };
}

/**
 * Returns SQL for the next webhooks with pending deliveries, by ID after `:last`, and when the first of each is due. It
 * looks up each webhook in an index, so the number of deliveries doesn't matter.
 */
export function nextPending(engine: Engine, max: number): string {
  // MariaDB can't jump from webhook to webhook in the index: it would read the rest of it each time. So it visits all
  // webhooks, of which some have no pending deliveries. It would also read all deliveries of a webhook for a minimum.
  if (engine === "mysql")
    return `select id as webhook_id, (select due_at from deliveries
        where pending_webhook_id = webhooks.id order by due_at limit 1) as due_at
      from webhooks where id > :last order by id limit ${max}`;
  return `with recursive visited (id, step) as (
      select min(webhook_id), 1 from deliveries where webhook_id > :last and due_at is not null
      union all
      select (select min(webhook_id) from deliveries where webhook_id > visited.id and due_at is not null), step + 1
      from visited where visited.id is not null and step < ${max}
    )
    select id as webhook_id,
      (select min(due_at) from deliveries where webhook_id = visited.id and due_at is not null) as due_at
    from visited where id is not null`;
}
