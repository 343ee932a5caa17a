import type { Knex } from "knex";
import { type Engine, rowsOf } from "../engine.ts";
import { appliedMigrations, MIGRATIONS, newerMigrations, pendingMigrations } from "./index.ts";

/** What the pending migrations do to this database. */
export type UpgradePlan = {
  /** The newest migration that was applied; undefined for an empty database. */
  schema: string | undefined;
  /** The version that applied it. */
  version: string | undefined;
  pending: PlannedMigration[];
  /** Whether the version that created `schema` works on the result, beside this one or after a rollback. */
  isCompatible: boolean;
};

export type PlannedMigration = {
  name: string;
  changes: string;
  /** Writes to these wait. `rows` is an estimate above 100,000. */
  tables: { name: string; rows: number }[];
  /** An estimate; 0 for less than one. */
  seconds: number;
};

// Rows that are changed and indexed. Measured with an update of every row and a new index, on two cores of a virtual machine,
// with 200,000 rows in memory: 30,000 to 150,000 on SQLite, 21,000 to 48,000 on PostgreSQL, 8,000 to 20,000 on
// MariaDB, which takes a tenth of the time to rebuild a table for a column. Larger tables take longer per row.
const ROWS_PER_SECOND: Record<Engine, number> = { sqlite: 50_000, postgres: 20_000, mysql: 10_000 };

// Counting up to this many rows takes milliseconds. Statistics of the database are reliable for larger tables only.
const COUNTED_MAX = 100_000;

const ESTIMATES: Record<Engine, string> = {
  sqlite: "select count(*) as estimate from ??",
  postgres: "select reltuples as estimate from pg_class where oid = to_regclass(?)",
  mysql:
    "select table_rows as estimate from information_schema.tables where table_schema = database() and table_name = ?",
};

/** Changes nothing. @throws IncompatibleSchema, UnfinishedCopy */
export async function planUpgrade(knex: Knex, engine: Engine): Promise<UpgradePlan> {
  await newerMigrations(knex);
  const names = await pendingMigrations(knex);
  const pending = MIGRATIONS.filter(({ name }) => names.includes(name));
  const applied = await appliedMigrations(knex);
  const schema = applied.at(-1);
  const row = schema && (await knex("schema_compatibility").where({ migration: schema }).first("version"));
  const planned: PlannedMigration[] = [];
  for (const { name, changes, rewrites } of pending) {
    const tables = [];
    for (const table of rewrites(engine))
      tables.push({ name: table, rows: await estimateRows(knex, engine, table) });
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    planned.push({ name, changes, tables, seconds: Math.floor(rows / ROWS_PER_SECOND[engine]) });
  }
  const isCompatible = pending.every(({ oldestCompatible }) => applied.includes(oldestCompatible ?? ""));
  return { schema, version: row ? row.version : undefined, pending: planned, isCompatible };
}

async function estimateRows(knex: Knex, engine: Engine, table: string): Promise<number> {
  if (!(await knex.schema.hasTable(table))) return 0;
  const some = knex(table as never)
    .select(knex.raw("1"))
    .limit(COUNTED_MAX)
    .as("some");
  const [{ counted }] = await knex.from(some as never).count({ counted: "*" });
  if (counted < COUNTED_MAX) return counted;
  const [row] = rowsOf<{ estimate: number }>(await knex.raw(ESTIMATES[engine], [table]));
  return Math.max(counted, Math.round(row?.estimate ?? 0));
}
