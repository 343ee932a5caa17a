import type { Knex } from "knex";
import { type Engine, engineOf, isMissing, type Key, rowsOf, sqliteFile } from "../database/engine.ts";
import { isDuplicate } from "../database/errors.ts";
import { type Database, openDatabase } from "../database/index.ts";
import { COPY_PROGRESS, sourceOfCopy } from "../database/migrations/index.ts";
import { createTables } from "../database/migrations/migration.ts";
import { count, json, type RowOf, string, type Table, table, text } from "../database/tables/columns.ts";
import { TABLES } from "../database/tables/index.ts";
import { type CommandRun, createOperatorLog } from "../events/operator-log.ts";
import { batchesOf, type Digest, digestOf } from "./rows.ts";

export type { CommandRun };

export type CopiedTable = { name: string } & Digest;

/** Why a copy did not begin or is not complete. Scripts read `code`. */
export class CopyFailed extends Error {
  override readonly name = "CopyFailed";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** One of the two databases cannot be used; the cause says why. */
export class DatabaseUnavailable extends Error {
  override readonly name = "DatabaseUnavailable";
  readonly side: "from" | "to";
  constructor(side: "from" | "to", cause: unknown) {
    super((cause as Error).message, { cause });
    this.side = side;
  }
}

export type CopyOptions = {
  onTable(step: "copied" | "verified", table: string, rows: number): void;
  /** A row counts twice: when it is copied, and when it is verified. */
  onProgress?(done: number, total: number): void;
  run: CommandRun;
};

export function nameOf(url: string): string {
  if (engineOf(url) === "sqlite") return `sqlite:${sqliteFile(url)}`;
  const { host, pathname } = new URL(url);
  return `${engineOf(url)}://${host}${pathname}`;
}

/** The migrations of a database, and on SQLite the version of its links. They describe one database. */
const OF_THIS_DATABASE = ["knex_migrations", "knex_migrations_lock", "schema_compatibility", "link_changes"];

/** The tables that are copied. They are declared in the order of their references. */
export const COPIED = TABLES.filter(({ name }) => !OF_THIS_DATABASE.includes(name));

// Databases that are busy with the copy respond late, and no request waits for a statement.
const LIMITS = { timeoutMs: 120_000 };

/** Copies a database at rest and compares; continues an interrupted copy. Throws CopyFailed, DatabaseUnavailable. */
export async function copyDatabase(from: string, to: string, options: CopyOptions): Promise<CopiedTable[]> {
  if (nameOf(from) === nameOf(to))
    throw new CopyFailed("same_database", "--from and --to name the same database.");
  if (isMissing(from)) throw new CopyFailed("no_source", `${nameOf(from)} doesn't exist.`);
  const source = openDatabase(from, LIMITS);
  const target = openDatabase(to, LIMITS);
  try {
    await checkSource(source);
    const progress = createProgress(target);
    const state = await checkTarget(target, progress, nameOf(from));
    if (state === "empty") await progress.begin(nameOf(from));
    await target.migrate({ isCopyTarget: true });
    if (state === "complete") {
      await progress.remove();
      const others = COPIED.filter(({ name }) => name !== RECORDED);
      return await verify(source, target, others, options, await countingOf(source, others, 1, options));
    }
    const count = await countingOf(source, COPIED, 2, options);
    for (const table of COPIED) {
      const rows = await copyTable(source, target, progress, table, count);
      options.onTable("copied", table.name, rows);
    }
    const copied = await verify(source, target, COPIED, options, count);
    await complete(target, progress, options.run);
    return copied;
  } finally {
    await Promise.all([source.close(), target.close()]);
  }
}

async function checkSource(source: Database): Promise<void> {
  const pending = await source.pendingMigrations().catch((error) => {
    throw new DatabaseUnavailable("from", error);
  });
  const newer = await source.newerMigrations();
  if (newer.length > 0) {
    throw new CopyFailed(
      "newer_source",
      `The source was migrated by a newer version (${newer.join(", ")}). Copy with that version.`,
    );
  }
  if (pending.length > 0) {
    throw new CopyFailed(
      "outdated_source",
      `The source isn't migrated (pending: ${pending.join(", ")}). Run "linkgate migrate" on it first.`,
    );
  }
}

const LISTS: Record<Engine, string> = {
  sqlite: "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'",
  postgres: `select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE'`,
  mysql: `select table_name as name from information_schema.tables
    where table_schema = database() and table_type = 'BASE TABLE'`,
};

type TargetState = "empty" | "unfinished" | "complete";

/** Checks, before anything in the target changes, that it is empty or has a copy of the source whose command died. */
async function checkTarget(target: Database, progress: Progress, source: string): Promise<TargetState> {
  const unfinished = await progress.source().catch((error) => {
    throw new DatabaseUnavailable("to", error);
  });
  if (unfinished === source) return "unfinished";
  if (unfinished !== undefined) {
    throw new CopyFailed(
      "other_source",
      `The target contains an unfinished copy of ${unfinished}. Finish that, or use an empty database.`,
    );
  }
  for (const { name } of rowsOf<{ name: string }>(await target.knex.raw(LISTS[target.engine]))) {
    if (name === COPY_PROGRESS || OF_THIS_DATABASE.includes(name)) continue;
    if ((await target.knex(name).first(target.knex.raw("1 as found"))) === undefined) continue;
    if (await isCopyOf(source, target)) return "complete";
    throw new CopyFailed("not_empty", `The target isn't empty (${name} has rows). Use an empty database.`);
  }
  return "empty";
}

async function isCopyOf(source: string, target: Database): Promise<boolean> {
  if (!(await target.knex.schema.hasTable("events"))) return false;
  const [last] = await createOperatorLog(target).list(1);
  return last?.command === "copy" && last.outcome === "succeeded" && last.options.from === source;
}

type Count = (rows: number) => void;

/** Returns a function that reports further rows. */
async function countingOf(
  { knex }: Database,
  tables: readonly Table[],
  steps: 1 | 2,
  { onProgress }: CopyOptions,
): Promise<Count> {
  if (!onProgress) return () => {};
  let total = 0;
  for (const { name } of tables) {
    const [row] = await knex(name).count({ count: "*" });
    total += steps * Number(row?.count);
  }
  let done = 0;
  return (rows) => {
    done += rows;
    onProgress(done, total);
  };
}

/** Resolves to the number of copied rows, also from earlier attempts. */
async function copyTable(
  source: Database,
  target: Database,
  progress: Progress,
  table: Table,
  count: Count,
): Promise<number> {
  const { lastKey: start, rows: before } = await progress.of(table.name);
  count(before);
  let copied = before;
  for await (const { rows, lastKey } of batchesOf(source, table, start)) {
    const insert = async (trx: Knex.Transaction) => {
      const columns = Object.keys(table.columns);
      await trx.raw(insertionOf(columns, rows.length), [table.name, ...columns, ...rows.flat()] as never);
      await progress.advance(trx, table.name, lastKey, rows.length);
    };
    await target.transaction(insert).catch((error) => {
      if (!isDuplicate(error)) throw error;
      throw new CopyFailed(
        "changed_target",
        `Something else has written to ${table.name} in the target. Stop every server that uses the target, and copy into an empty database.`,
      );
    });
    copied += rows.length;
    count(rows.length);
  }
  return copied;
}

function insertionOf(columns: string[], count: number): string {
  const list = (mark: string) => `(${columns.map(() => mark).join(", ")})`;
  return `insert into ?? ${list("??")} values ${Array.from({ length: count }, () => list("?")).join(", ")}`;
}

async function verify(
  source: Database,
  target: Database,
  tables: readonly Table[],
  { onTable }: CopyOptions,
  count: Count,
): Promise<CopiedTable[]> {
  const copied: CopiedTable[] = [];
  for (const table of tables) {
    const [expected, actual] = await Promise.all([digestOf(source, table), digestOf(target, table, count)]);
    if (expected.rows !== actual.rows || expected.checksum !== actual.checksum) {
      throw new CopyFailed(
        "different_rows",
        `${table.name} differs: ${expected.rows} rows in the source, ${actual.rows} in the target. Stop every server that uses either database, and copy again into an empty database.`,
      );
    }
    onTable("verified", table.name, actual.rows);
    copied.push({ name: table.name, ...actual });
  }
  return copied;
}

// The table that recording the copy in the operator's log changes in the target.
const RECORDED = "events";

async function complete(target: Database, progress: Progress, run: CommandRun): Promise<void> {
  await target.transaction(async (trx) => {
    const log = createOperatorLog({ ...target, transaction: (work) => work(trx) });
    await log.finish(await log.start(run));
    await progress.end(trx);
  });
  await progress.remove();
}

type Progress = ReturnType<typeof createProgress>;

const copyProgress = table(COPY_PROGRESS, {
  name: string(64).primary(),
  source: text(),
  last_key: json().nullable(),
  rows_copied: count(),
});

function createProgress({ knex, engine }: Database) {
  const rows = (from: Knex = knex) => from<RowOf<typeof copyProgress>>(COPY_PROGRESS as never);
  return {
    source: () => sourceOfCopy(knex),

    /** Called before the migrations, so servers and other commands refuse the target until the copy ends. */
    async begin(source: string): Promise<void> {
      await createTables(knex, engine, [copyProgress]);
      await rows().insert(COPIED.map(({ name }) => ({ name, source, last_key: null, rows_copied: 0 })));
    },

    async of(table: string): Promise<{ lastKey?: Key; rows: number }> {
      const row = await rows().where({ name: table }).first();
      return {
        ...(row?.last_key && { lastKey: JSON.parse(row.last_key) as Key }),
        rows: row?.rows_copied ?? 0,
      };
    },

    async advance(trx: Knex.Transaction, table: string, lastKey: Key, count: number): Promise<void> {
      const rows_copied = trx.raw("rows_copied + ?", [count]) as never;
      await rows(trx)
        .where({ name: table })
        .update({ last_key: JSON.stringify(lastKey), rows_copied });
    },

    /** Ends the copy: from the commit on, servers may use the target. */
    async end(trx: Knex.Transaction): Promise<void> {
      await rows(trx).delete();
    },

    remove: () => knex.schema.dropTableIfExists(COPY_PROGRESS),
  };
}
