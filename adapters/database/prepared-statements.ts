import { hash } from "node:crypto";
import type { Knex } from "knex";
import { isNameConflict } from "./postgres.ts";
import { withRetries } from "./retry.ts";
import type { Statement } from "./sqlite/group-transaction.ts";

class Parameter {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

export type Value = string | number | boolean | null;
export type Row = Record<string, Value>;
type Bindable = Value | readonly string[];
// A parameter is typed as raw SQL because Knex accepts that wherever it accepts a value.
type Parameters<Name extends string> = Readonly<Record<Name, Knex.Raw>>;
type Compilable = { toSQL(): { sql: string; bindings: readonly unknown[]; method: string } };
export type Build<Name extends string = string> = (knex: Knex, parameters: Parameters<Name>) => Compilable;
type Query = { sql: string; bindings: unknown[] };
type Compiled = Query & { method: string; options: object };

export type Prepare = ReturnType<typeof createPrepare>["prepare"];

// The methods that Knex's query builder calls, which its public types omit.
type Client = Knex.Client & {
  driverName: string;
  // These four only in the SQLite client.
  writeTogether(queries: Statement[]): Promise<void>;
  read?(query: Query): unknown[];
  readInTurn(query: Query): Promise<unknown[]>;
  write?(query: Query): Promise<number>;
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<void>;
  query(connection: unknown, query: object): Promise<unknown>;
  processResponse(response: unknown): unknown;
};

const parameters = new Proxy(
  {},
  { get: (_target, name) => new Parameter(String(name)) },
) as Parameters<string>;

/** SQLite would recompile a join for each value, which takes ten times as long; others plan better with it. */
export function unplannedParameter(knex: Knex, parameter: Knex.Raw): Knex.Raw {
  const isSqlite = (knex.client as Client).driverName === "better-sqlite3";
  return knex.raw(isSqlite ? "(select ?)" : "?", [parameter]);
}

// Knex's names of the statements that change rows.
const CHANGES = new Set(["insert", "update", "del"]);

export function createPrepare(knex: Knex) {
  const client = knex.client as Client;
  // False behind a connection pooler that doesn't know named statements.
  let isNaming = true;

  function compile<Name extends string>(build: Build<Name>): Compiled {
    const { sql, bindings, method } = build(knex, parameters).toSQL();
    // Processes behind a pooler share connections, so a name must mean the same statement in all of them.
    const options =
      client.driverName === "pg" ? { name: `linkgate_${hash("sha256", sql, "base64url")}` } : {};
    return { sql: client.positionBindings(sql), bindings: [...bindings], method, options };
  }

  return {
    /**
     * Building a query in Knex takes longer than running it, so this compiles it once. Resolves to rows or the number
     * of changes. Arrays are for PostgreSQL only. With `inTurn`, SQLite reads at the end of the turn.
     */
    prepare: <Answer, Name extends string>(build: Build<Name>, { inTurn } = { inTurn: false }) => {
      let compiled: Compiled | undefined;
      return async (values: Record<Name, Bindable>): Promise<Answer> => {
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

    prepareTogether: (writes: Build[]) => {
      let compiled: Compiled[] | undefined;
      return (values: Row[]): Promise<void> => {
        compiled ??= writes.map(compile);
        const statements = compiled.map(({ sql, bindings }, index) => ({
          sql,
          // SQLite has no booleans.
          bindings: bind(bindings, values[index] as Row).map((value) =>
            typeof value === "boolean" ? Number(value) : value,
          ),
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

function withoutName({ options: _, ...query }: Compiled): object {
  return query;
}

function bind(template: unknown[], values: Record<string, Bindable>): unknown[] {
  return template.map((value) => (value instanceof Parameter ? values[value.name] : value));
}
