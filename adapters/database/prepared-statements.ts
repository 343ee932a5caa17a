import { hash } from "node:crypto";
import type { Knex } from "knex";
import { isNameConflict } from "./postgres.ts";
import { withRetries } from "./retry.ts";
import type { Statement } from "./sqlite/worker.ts";
import { operationOf } from "./statement-observer.ts";

export type Value = string | number | boolean | null;
export type Row = Record<string, Value>;
type Query = { sql: string; bindings: unknown[]; method: string; options: object };

export type Prepare = ReturnType<typeof createPrepare>["prepare"];

// The methods that Knex's query builder calls, which its public types omit.
type Client = Knex.Client & {
  driverName: string;
  // Only in the SQLite client.
  write(statements: Statement[]): Promise<number>;
  acquireConnection(isLocal: boolean): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<void>;
  query(connection: unknown, query: object): Promise<unknown>;
  processResponse(response: unknown): unknown;
};

// `:name`, but not a cast of PostgreSQL.
const PARAMETER = /(?<!:):(\w+)/g;

/** For the most frequent statements: building a query in Knex takes longer than running it. */
export function createPrepare(knex: Knex) {
  const client = knex.client as Client;
  const isSqlite = client.driverName === "better-sqlite3";
  // False behind a connection pooler that doesn't know named statements.
  let isNaming = true;

  /** Returns the SQL of the engine and the names of its parameters. */
  function compile(text: string): { sql: string; names: string[] } {
    const names = [...text.matchAll(PARAMETER)].map(([, name]) => name as string);
    // SQLite would recompile a join for each value, which takes ten times as long; others plan better with it.
    const mark = isSqlite && /\bjoin\b/.test(text) ? "(select ?)" : "?";
    const sql = client.positionBindings(text.replaceAll(PARAMETER, mark));
    return { sql: client.driverName === "mysql2" ? sql.replaceAll('"', "`") : sql, names };
  }

  return {
    /**
     * Prepares SQL with parameters such as `:name`, and identifiers in double quotes where they need any. Resolves to
     * rows or the number of changes. Arrays are for PostgreSQL only. A write that is `isLocal` doesn't wait for a standby.
     */
    prepare: <Answer, Name extends string>(text: string, { isLocal = false } = {}) => {
      const { sql, names } = compile(text);
      const operation = operationOf(sql);
      const isRead = operation === "select";
      const method = operation === "delete" ? "del" : operation; // as Knex calls it
      // Processes behind a pooler share connections, so a name must mean the same statement in all of them.
      const options =
        client.driverName === "pg" ? { name: `linkgate_${hash("sha256", sql, "base64url")}` } : {};
      return async (values: Record<Name, Value | readonly string[]>): Promise<Answer> => {
        const bindings = names.map((name) => values[name as Name]);
        const run = () => send({ sql, bindings: [...bindings], method, options }, isRead || isLocal);
        return (await withRetries<unknown>(run, isRead)) as Answer;
      };
    },

    /** Prepares statements for SQLite, which run in one transaction, each with the values of its row. */
    prepareTogether: (texts: string[]) => {
      const statements = texts.map(compile);
      return (rows: Row[]): Promise<number> => {
        const together = statements.map(({ sql, names }, index) => ({
          sql,
          bindings: names.map((name) => rows[index]?.[name]),
        }));
        return withRetries(() => client.write(together), false);
      };
    },
  };

  async function send(query: Query, isLocal: boolean): Promise<unknown> {
    const connection = await client.acquireConnection(isLocal);
    const isNamed = isNaming;
    try {
      return client.processResponse(await client.query(connection, isNamed ? query : withoutName(query)));
    } catch (error) {
      if (!isNamed || !isNameConflict(error)) throw error;
      isNaming = false;
    } finally {
      client.releaseConnection(connection);
    }
    return send(query, isLocal);
  }
}

function withoutName({ options: _, ...query }: Query): object {
  return query;
}
