import type { Knex } from "knex";
import type { Engine } from "./engine.ts";
import { createGatherer } from "./gather.ts";
import { toStorable } from "./postgres.ts";
import { type Prepare, unplannedParameter, type Value } from "./prepared-statements.ts";

/** A query for the rows of a key. */
export type LookupQuery<Row> = {
  /** Builds the query. `key` is compared with the key's column; `parameters` are those of `values`. */
  build(knex: Knex, key: Knex.Raw, parameters: Readonly<Record<string, Knex.Raw>>): Knex.QueryBuilder;
  /** The property of a row that contains the key. */
  column: keyof Row & string;
  /** Returns the values of further parameters when the query is sent. */
  values?: () => Record<string, Value>;
  /** Whether SQLite runs it with those of other requests, at the end of the turn of the event loop. */
  inTurn?: boolean;
};

/** Finds the rows of a key. They are as current as the call. */
export type Lookup<Row> = (key: string) => Promise<Row[]>;

type Waiting<Row> = { key: string; resolve(rows: Row[]): void; reject(error: unknown): void };

// `select` hides the number of keys from the planner, which would otherwise plan anew for each. `offset` makes it plan the
// query as for one key, by the index, and not as for the tables of the moment, which may be empty.
const EACH = "unnest((select ?::text[])) as wanted(key), lateral (? offset 0) as found";

/** Prepares a lookup. On PostgreSQL, concurrent calls share a statement, which saves round trips. */
export function prepareLookup<Row>(
  { prepare, engine }: { prepare: Prepare; engine: Engine },
  { build, column, values = () => ({}), inTurn = false }: LookupQuery<Row>,
): Lookup<Row> {
  if (engine !== "postgres") {
    const find = prepare<Row[], string>(
      (q, parameters) => build(q, unplannedParameter(q, parameters.key as Knex.Raw), parameters),
      { inTurn },
    );
    return (key) => find({ ...values(), key });
  }

  const findAll = prepare<Row[], string>((q, parameters) =>
    q
      .select("found.*")
      .from(q.raw(EACH, [parameters.keys as Knex.Raw, build(q, q.raw("wanted.key"), parameters)])),
  );
  const add = createGatherer(async (batch: Waiting<Row>[]) => {
    try {
      const keys = [...new Set(batch.map(({ key }) => key))];
      const rows = Map.groupBy(await findAll({ ...values(), keys }), (row) => row[column]);
      for (const { key, resolve } of batch) resolve(rows.get(key as Row[keyof Row & string]) ?? []);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  });
  return (key) => new Promise((resolve, reject) => add({ key: toStorable(key), resolve, reject }));
}
