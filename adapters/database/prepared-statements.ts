import type { Knex } from "knex";
import { withRetries } from "./retry.ts";
import type { BeginGroupState } from "./sqlite/group-state.ts";
import type { Statement } from "./sqlite/group-transaction.ts";

/** A placeholder for a value in a statement that is compiled once. */
class Parameter {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

type Value = string | number | boolean | null;
// A parameter is typed as raw SQL because Knex accepts that wherever it accepts a value.
type Parameters<Name extends string> = Readonly<Record<Name, Knex.Raw>>;
type Compilable = { toSQL(): { sql: string; bindings: readonly unknown[]; method: string } };
/** Builds a query with parameters in place of values. */
export type Build<Name extends string = string> = (knex: Knex, parameters: Parameters<Name>) => Compilable;
type Compiled = { sql: string; bindings: unknown[]; method: string; options: object };

/**
 * Compiles a query once and returns a function that runs it with values for its parameters, by name. It resolves to
 * Knex's result: rows for a select, a count for a change. Building a query in Knex takes longer than running it in the
 * database, so frequent requests use prepared queries only.
 */
export type Prepare = <Answer, Name extends string>(
  build: Build<Name>,
) => (values: Record<Name, Value>) => Promise<Answer>;

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

/** Creates `prepare` and `prepareTogether` for a database. */
export function createPrepare(knex: Knex): { prepare: Prepare; prepareTogether: PrepareTogether } {
  const client = knex.client as Client;
  let prepared = 0;

  function compile<Name extends string>(build: Build<Name>): Compiled {
    const { sql, bindings, method } = build(knex, parameters).toSQL();
    // PostgreSQL parses and plans a named statement once per connection.
    const options = client.driverName === "pg" ? { name: `linkgate_${++prepared}` } : {};
    return { sql: client.positionBindings(sql), bindings: [...bindings], method, options };
  }

  return {
    prepare: <Answer, Name extends string>(build: Build<Name>) => {
      let compiled: Compiled | undefined;
      return async (values: Record<Name, Value>) => {
        compiled ??= compile(build);
        const { bindings: template, ...query } = compiled;
        const bindings = bind(template, values);
        if (client.read && query.method === "select" && knex.listenerCount("query") === 0) {
          try {
            return client.read({ sql: query.sql, bindings }) as Answer;
          } catch {
            // The way of all other queries tries again, and reports the error.
          }
        }
        return (await withRetries(() => send({ ...query, bindings }), query.method === "select")) as Answer;
      };
    },

    prepareTogether: (writes) => {
      let compiled: Compiled[] | undefined;
      return (values) => {
        compiled ??= writes.map(({ build }) => compile(build));
        const queries = compiled.map(({ sql, bindings }, index): Statement => {
          const row = values[index] as Record<string, Value>;
          const state = writes[index]?.state;
          return state
            ? { sql, state, row, bind: (completed) => bind(bindings, completed) }
            : { sql, bindings: bind(bindings, row) };
        });
        return withRetries(() => client.writeTogether(queries), false);
      };
    },
  };

  async function send(query: object): Promise<unknown> {
    const connection = await client.acquireConnection();
    try {
      return client.processResponse(await client.query(connection, query));
    } finally {
      client.releaseConnection(connection);
    }
  }
}

function bind(template: unknown[], values: Record<string, Value>): unknown[] {
  return template.map((value) => (value instanceof Parameter ? values[value.name] : value));
}
