import { hash } from "node:crypto";
import type { Knex } from "knex";
import { isNameConflict } from "./postgres.ts";
import { withRetries } from "./retry.ts";
import type { Statement } from "./sqlite/group-transaction.ts";

/** A placeholder for a value in a statement that is compiled once. */
class Parameter {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** The value of a parameter. */
export type Value = string | number | boolean | null;
/** The values of a row, by column. */
export type Row = Record<string, Value>;
type Bindable = Value | readonly string[];
// A parameter is typed as raw SQL because Knex accepts that wherever it accepts a value.
type Parameters<Name extends string> = Readonly<Record<Name, Knex.Raw>>;
type Compilable = { toSQL(): { sql: string; bindings: readonly unknown[]; method: string } };
/** Builds a query with parameters in place of values. */
export type Build<Name extends string = string> = (knex: Knex, parameters: Parameters<Name>) => Compilable;
type Compiled = { sql: string; bindings: unknown[]; method: string; options: object };

/**
 * Compiles a query once and returns a function that runs it with values for its parameters, by name. It resolves to
 * Knex's result: rows for a select, a count for a change. Values may be arrays on PostgreSQL only. Building a query in Knex
 * takes longer than running it in the database, so frequent requests use prepared queries only.
 *
 * With `inTurn`, SQLite runs a select at the end of the turn of the event loop, in one transaction with others.
 */
export type Prepare = <Answer, Name extends string>(
  build: Build<Name>,
  options?: { inTurn: boolean },
) => (values: Record<Name, Bindable>) => Promise<Answer>;

/**
 * Compiles several writes for SQLite and returns a function that runs them, all or none, with values for each. They are
 * committed in a group with other concurrent writes.
 */
export type PrepareTogether = (writes: Build[]) => (values: Record<string, Value>[]) => Promise<void>;

// The methods that Knex's query builder calls, which its public types omit.
type Client = Knex.Client & {
  driverName: string;
  /** Only in the SQLite client. */
  writeTogether(queries: Statement[]): Promise<void>;
  /** Only in the SQLite client. */
  read?(query: { sql: string; bindings: unknown[] }): unknown[];
  /** Only in the SQLite client. */
  readInTurn(query: { sql: string; bindings: unknown[] }): Promise<unknown[]>;
  /** Only in the SQLite client. */
  write?(query: { sql: string; bindings: unknown[] }): Promise<number>;
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<void>;
  query(connection: unknown, query: object): Promise<unknown>;
  processResponse(response: unknown): unknown;
};

// Each property is a parameter of that name.
const parameters = new Proxy(
  {},
  { get: (_target, name) => new Parameter(String(name)) },
) as Parameters<string>;

/**
 * Returns a parameter that SQLite's planner does not inspect. Otherwise SQLite plans a join by its bound values and
 * recompiles the statement for each value, which takes ten times as long as running it. The other engines plan better
 * when they see the parameter itself.
 */
export function unplannedParameter(knex: Knex, parameter: Knex.Raw): Knex.Raw {
  const isSqlite = (knex.client as Client).driverName === "better-sqlite3";
  return knex.raw(isSqlite ? "(select ?)" : "?", [parameter]);
}

// Knex's names of the statements that change rows.
const CHANGES = new Set(["insert", "update", "del"]);

/** Creates `prepare` and `prepareTogether` for a database. */
export function createPrepare(knex: Knex): { prepare: Prepare; prepareTogether: PrepareTogether } {
  const client = knex.client as Client;
  // False behind a connection pooler that doesn't know named statements.
  let isNaming = true;

  function compile<Name extends string>(build: Build<Name>): Compiled {
    const { sql, bindings, method } = build(knex, parameters).toSQL();
    // PostgreSQL parses and plans a named statement once per connection. Processes behind a pooler share connections, so
    // the name must mean the same statement in all of them.
    const options =
      client.driverName === "pg" ? { name: `linkgate_${hash("sha256", sql, "base64url")}` } : {};
    return { sql: client.positionBindings(sql), bindings: [...bindings], method, options };
  }

  return {
    prepare: <Answer, Name extends string>(build: Build<Name>, { inTurn } = { inTurn: false }) => {
      let compiled: Compiled | undefined;
      return async (values: Record<Name, Bindable>) => {
        compiled ??= compile(build);
        const { bindings: template, ...query } = compiled;
        const bindings = bind(template, values);
        const { sql, method } = query;
        if (client.read && method === "select") {
          try {
            const read = { sql, bindings };
            return (inTurn ? await client.readInTurn(read) : client.read(read)) as Answer;
          } catch {
            // Fall through to the ordinary path, which retries and reports the error.
          }
        }
        const { write } = client;
        const run =
          write && CHANGES.has(method)
            ? () => write.call(client, { sql, bindings })
            : () => send({ ...query, bindings });
        return (await withRetries<unknown>(run, method === "select")) as Answer;
      };
    },

    prepareTogether: (writes) => {
      let compiled: Compiled[] | undefined;
      return (values) => {
        compiled ??= writes.map(compile);
        const statements = compiled.map(({ sql, bindings }, index) => ({
          sql,
          bindings: bind(bindings, values[index] as Row).map(toSqlite),
        }));
        return withRetries(() => client.writeTogether(statements), false);
      };
    },
  };

  async function send(query: Compiled): Promise<unknown> {
    const connection = await client.acquireConnection();
    const isNamed = isNaming;
    try {
      return client.processResponse(await client.query(connection, isNamed ? query : withoutName(query)));
    } catch (error) {
      if (!isNamed || !isNameConflict(error)) throw error;
      isNaming = false;
    } finally {
      client.releaseConnection(connection);
    }
    return send(query);
  }
}

/** Returns a value that the driver accepts. SQLite has no booleans. */
function toSqlite(value: unknown): unknown {
  return typeof value === "boolean" ? Number(value) : value;
}

function withoutName({ options: _, ...query }: Compiled): object {
  return query;
}

function bind(template: unknown[], values: Record<string, Bindable>): unknown[] {
  return template.map((value) => (value instanceof Parameter ? values[value.name] : value));
}
