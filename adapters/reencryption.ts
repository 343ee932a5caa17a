import { tryTo } from "../resources/try-to.ts";
import type { Encryption } from "./crypto/encryption.ts";
import { behind } from "./database/engine.ts";
import type { Database } from "./database/index.ts";
import { type Column, contextOf, type Table } from "./database/tables/columns.ts";
import { TABLES } from "./database/tables/index.ts";

type Connected = Pick<Database, "knex" | "engine">;
type Row = Record<string, string>;

type Encrypted = { table: Table; name: string; column: Column<string | null, boolean> };

const ENCRYPTED: Encrypted[] = TABLES.flatMap((table) =>
  Object.entries(table.columns).flatMap(([name, column]) =>
    column.facts.encryptedAs ? [{ table, name, column: column as Column<string, boolean> }] : [],
  ),
);

/** What a re-encryption did: the number of values, and of those that no configured key decrypts. */
export type Reencrypted = { reencrypted: number; unreadable: number };

const BATCH = 100;
const LEASE_MS = 30_000;

/**
 * Encrypts again what an older key encrypted, in one process at a time; undefined in the others. Reports how many values
 * are done.
 */
export async function reencrypt(
  database: Database,
  encryption: Encryption,
  stop?: AbortSignal,
  onProgress?: (done: number) => void,
): Promise<Reencrypted | undefined> {
  const lease = database.lease("reencrypt", LEASE_MS);
  if (!(await lease.isHeld())) return undefined;
  const { knex } = database;
  let reencrypted = 0;
  let unreadable = 0;
  try {
    for await (const { table, name, ciphertext, key, context } of outdated(database, encryption)) {
      if (stop?.aborted || !(await lease.isHeld())) break;
      const text = tryTo(() => encryption.decrypt(ciphertext, context));
      if (text === undefined) {
        unreadable++;
        continue;
      }
      const replaced = await knex(table)
        .where({ ...key, [name]: ciphertext })
        .update({ [name]: encryption.encrypt(text, context) });
      reencrypted += replaced;
      onProgress?.(reencrypted + unreadable);
    }
    return { reencrypted, unreadable };
  } finally {
    await lease.release();
  }
}

/** Counts the values that were encrypted with an older key than the first. */
export async function countOutdated(database: Connected, encryption: Encryption): Promise<number> {
  let count = 0;
  for await (const _ of outdated(database, encryption)) count++;
  return count;
}

type Outdated = { table: string; name: string; ciphertext: string; key: Row; context: string };

async function* outdated(database: Connected, encryption: Encryption): AsyncGenerator<Outdated> {
  for (const { table, name, column } of ENCRYPTED) {
    for await (const { [name]: ciphertext = "", ...key } of rowsOf(database, table, name)) {
      const context = contextOf(column, ...valuesOf(table, key));
      if (!encryption.isCurrent(ciphertext, context))
        yield { table: table.name, name, ciphertext, key, context };
    }
  }
}

async function* rowsOf({ knex, engine }: Connected, table: Table, column: string): AsyncGenerator<Row> {
  const { name, primaryKey } = table;
  let last: Row | undefined;
  do {
    const query = knex(name)
      .whereNotNull(column)
      .orderBy([...primaryKey])
      .limit(BATCH);
    if (last) query.whereRaw(...behind(engine, primaryKey, valuesOf(table, last)));
    const rows: Row[] = await query.select([...primaryKey, column]);
    yield* rows;
    last = rows.length === BATCH ? rows.at(-1) : undefined;
  } while (last);
}

function valuesOf({ primaryKey }: Table, row: Row): string[] {
  return primaryKey.map((name) => row[name] as string);
}
