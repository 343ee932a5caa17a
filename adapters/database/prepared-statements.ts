import { hash } from "node:crypto";
import type { Knex } from "knex";
import { isNameConflict } from "./postgres.ts";
import { withRetries } from "./retry.ts";
import type { BeginGroupState, Row } from "./sqlite/group-state.ts";
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
export type PrepareTogether = (writes: GroupedWrite[]) => (values: Record<string, Value>[]) => Promise<void>;
/** A write, and the state of its group that completes its values. */
export type GroupedWrite = { build: Build; state?: BeginGroupState | undefined };

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
        const isObserved = knex.listenerCount("query") > 0;
        if (client.read && method === "select" && !isObserved) {
          try {
            const read = { sql, bindings };
            return (inTurn ? await client.readInTurn(read) : client.read(read)) as Answer;
          } catch {
            // The way of all other queries tries again, and reports the error.
          }
        }
        const { write } = client;
        const run =
          write && CHANGES.has(method) && !isObserved
            ? () => write.call(client, { sql, bindings })
            : () => send({ ...query, bindings });
        return (await withRetries<unknown>(run, method === "select")) as Answer;
      };
    },

    prepareTogether: (writes) => {
      let toStatements: ((row: Row) => Statement)[] | undefined;
      return (values) => {
        toStatements ??= writes.map(({ build, state }) => toStatement(compile(build), state));
        const statements = toStatements.map((toStatement, index) => toStatement(values[index] as Row));
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

/** Returns a function that turns a row into a statement for SQLite, whose values are bound now, or completed by the group. */
function toStatement(
  { sql, bindings }: Compiled,
  state: BeginGroupState | undefined,
): (row: Row) => Statement {
  const bindRow = (row: Row) => bind(bindings, row).map(toSqlite);
  if (!state) return (row) => ({ sql, bindings: bindRow(row) });
  return (row) => ({ sql, state, row, bind: bindRow });
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
