import { hash } from "node:crypto";
import { behind, type Key } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { Table } from "../database/tables/columns.ts";

/** A value as every engine returns it: booleans are 0 and 1. */
type Value = string | number | Buffer | null;
type Row = Value[];

/** A number of rows, and what is the same for the same rows in any order, on any engine. */
export type Digest = { rows: number; checksum: string };

// A batch is in memory as values and as the statement that inserts it. MariaDB accepts 16 MB per statement.
const BATCH_BYTES = 2 ** 21;
const BATCH_ROWS = 1000;
const FIRST_ROWS = 50;
// Below the limit of SQLite, 32,766.
const PARAMETERS = 30_000;

/** Reads a table in the order of its key. The size of each batch follows from the size of the last one. */
export async function* batchesOf(
  { knex, engine }: Pick<Database, "knex" | "engine">,
  { name, columns, primaryKey }: Table,
  after?: Key,
): AsyncGenerator<{ rows: Row[]; lastKey: Key }> {
  const names = Object.keys(columns);
  const most = Math.min(BATCH_ROWS, Math.floor(PARAMETERS / names.length));
  let limit = Math.min(FIRST_ROWS, most);
  let last = after;
  for (;;) {
    const query = knex(name)
      .select(names)
      .orderBy([...primaryKey])
      .limit(limit);
    if (last) query.whereRaw(...behind(engine, primaryKey, last));
    const read: Record<string, unknown>[] = await query;
    if (read.length === 0) return;
    const rows = read.map((row) => names.map((column) => normalize(row[column])));
    last = primaryKey.map((column) => read.at(-1)?.[column] as string | number);
    yield { rows, lastKey: last };
    if (read.length < limit) return;
    const size = rows.reduce((sum, row) => sum + sizeOf(row), 0);
    limit = Math.max(1, Math.min(most, limit * 4, Math.floor((limit * BATCH_BYTES) / size)));
  }
}

function normalize(value: unknown): Value {
  return typeof value === "boolean" ? Number(value) : (value as Value);
}

function sizeOf(row: Row): number {
  return row.reduce<number>(
    (sum, value) => sum + (typeof value === "number" || value === null ? 8 : value.length),
    0,
  );
}

/** Reads a table and returns its number of rows and checksum: the sum of the SHA-256 hashes of its rows. */
export async function digestOf(
  database: Pick<Database, "knex" | "engine">,
  table: Table,
  onBatch?: (rows: number) => void,
): Promise<Digest> {
  let rows = 0;
  let sum = 0n;
  for await (const batch of batchesOf(database, table)) {
    rows += batch.rows.length;
    onBatch?.(batch.rows.length);
    for (const row of batch.rows) sum += BigInt(`0x${hash("sha256", textOf(row))}`);
  }
  return { rows, checksum: BigInt.asUintN(256, sum).toString(16).padStart(64, "0") };
}

function textOf(row: Row): string {
  return JSON.stringify(row.map((value) => (Buffer.isBuffer(value) ? [value.toString("base64")] : value)));
}
