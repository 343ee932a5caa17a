import type { Knex } from "knex";
import { persistently } from "./unavailable.ts";

/** Stands for a value in a statement that is compiled once. */
class Parameter {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

type Values = Record<string, string | number | boolean | null>;
type Parameters = Record<string, unknown>;
type Compilable = { toSQL(): { sql: string; bindings: readonly unknown[]; method: string } };
/** Builds a query; a parameter stands where a value will be. */
export type Build = (knex: Knex, parameters: Parameters) => Compilable;
type Compiled = { sql: string; bindings: unknown[]; method: string; options: object };
type Bound = { sql: string; bindings: unknown[] };

/**
 * Compiles a query once; what it returns runs it with the values of the parameters, in the order of their names. The
 * answer is Knex's own: rows for a select, a count for a change. Knex spends more on building a query than a
 * database on running one, so every query of a request that is sent often is made this way.
 */
export type Prepare = <Answer>(build: Build) => (values: Values) => Promise<Answer>;

/**
 * Several writes of SQLite's that happen together or not at all, and are committed with the other writes of their moment.
 * Each is given its own values.
 */
export type PrepareTogether = (builds: Build[]) => (values: Values[]) => Promise<void>;

// Knex's public types leave out what a query builder itself calls.
type Client = Knex.Client & {
  driverName: string;
  /** SQLite's alone. */
  writeTogether(queries: Bound[]): Promise<void>;
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<void>;
  query(connection: unknown, query: object): Promise<unknown>;
  processResponse(response: unknown): unknown;
};

// Names the value: `parameters.clientId` is the parameter `clientId`.
const parameters: Parameters = new Proxy({}, { get: (_target, name) => new Parameter(String(name)) });

/**
 * A parameter that SQLite's planner does not look at: it plans a join by the values bound to it, and compiles the
 * statement again for each of them, which takes ten times as long as running it. The other engines plan better when they
 * see the parameter itself.
 */
export function unplanned(knex: Knex, parameter: unknown): Knex.Raw {
  const isSqlite = (knex.client as Client).driverName === "better-sqlite3";
  return knex.raw(isSqlite ? "(select ?)" : "?", [parameter as Knex.Value]);
}

/** Makes `prepare` and its companion for a database. */
export function createPrepare(knex: Knex): { prepare: Prepare; prepareTogether: PrepareTogether } {
  const client = knex.client as Client;
  let prepared = 0;

  function compile(build: Build): Compiled {
    const { sql, bindings, method } = build(knex, parameters).toSQL();
    // A name makes PostgreSQL parse and plan a statement once per connection.
    const options = client.driverName === "pg" ? { name: `linkgate_${++prepared}` } : {};
    return { sql: client.positionBindings(sql), bindings: [...bindings], method, options };
  }

  return {
    prepare: <Answer>(build: Build) => {
      let compiled: Compiled | undefined;
      return async (values: Values) => {
        compiled ??= compile(build);
        const { bindings: template, ...query } = compiled;
        const bindings = bind(template, values);
        return (await persistently(() => send({ ...query, bindings }), query.method === "select")) as Answer;
      };
    },

    prepareTogether: (builds) => {
      let compiled: Compiled[] | undefined;
      return (values) => {
        compiled ??= builds.map(compile);
        const queries = compiled.map(({ sql, bindings }, index) => ({
          sql,
          bindings: bind(bindings, values[index] as Values),
        }));
        return persistently(() => client.writeTogether(queries), false);
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

function bind(template: unknown[], values: Values): unknown[] {
  return template.map((value) => (value instanceof Parameter ? values[value.name] : value));
}
