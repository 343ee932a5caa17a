import { existsSync } from "node:fs";
import { engineOf, sqliteFile } from "../database/engine.ts";
import { type Database, openDatabase } from "../database/index.ts";
import { createLeases, type Leases } from "../database/leases.ts";
import { createAuditChain } from "../events/audit-chain.ts";
import { type CommandRun, createOperatorLog } from "../events/operator-log.ts";
import { createClickLog } from "../links/click-log.ts";
import { createProgress, type Progress } from "./progress.ts";
import { batchesOf, type Digest, digestOf } from "./rows.ts";
import { namesOf, type Table, tablesOf } from "./schema.ts";

export type { CommandRun };

/** A copied table: its rows, and a checksum that is the same on every engine. */
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
  /** Called when a table is copied, and when it is verified. */
  onTable(step: "copied" | "verified", table: string, rows: number): void;
  /** The command, for the operator's log of the target. */
  run: CommandRun;
};

/** Names a database, without credentials and parameters. */
export function nameOf(url: string): string {
  if (engineOf(url) === "sqlite") return `sqlite:${sqliteFile(url)}`;
  const { host, pathname } = new URL(url);
  return `${engineOf(url)}://${host}${pathname}`;
}

// Databases that are busy with the copy respond late, and no request waits for a statement.
const LIMITS = { timeoutMs: 120_000 };

/**
 * Copies everything from one database to another one, on any engine, and compares both afterwards. A copy that was
 * interrupted continues. The source has to be at rest: what changes in it meanwhile makes the comparison fail.
 * @returns the copied tables
 * @throws CopyFailed, DatabaseUnavailable
 */
export async function copyDatabase(from: string, to: string, options: CopyOptions): Promise<CopiedTable[]> {
  if (nameOf(from) === nameOf(to))
    throw new CopyFailed("same_database", "--from and --to name the same database.");
  if (engineOf(from) === "sqlite" && !existsSync(sqliteFile(from)))
    throw new CopyFailed("no_source", `${nameOf(from)} doesn't exist.`);
  const source = openDatabase(from, LIMITS);
  const target = openDatabase(to, LIMITS);
  try {
    await checkSource(source);
    const progress = createProgress(target.knex);
    const isResumed = await checkTarget(target, progress, nameOf(from));
    await foldClicks(source);
    await target.migrate();
    const tables = await plan(source, target);
    if (!isResumed) {
      await progress.begin(
        nameOf(from),
        tables.map(({ name }) => name),
      );
    }
    for (const table of tables) {
      const rows = await copyTable(source, target, progress, table);
      options.onTable("copied", table.name, rows);
    }
    const copied = await verify(source, target, tables, options);
    await progress.end();
    await record(target, options.run);
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

// A lease of a killed server would still block the copy, and no server uses the source.
const NO_LEASES: Leases = { acquire: async () => true, release: async () => {} };

/** Counts the clicks in the log of SQLite, which the other engines don't have, in their links. */
async function foldClicks(source: Database): Promise<void> {
  if (source.engine === "sqlite") await createClickLog(source, NO_LEASES).fold(async () => true);
}

/** Checks that the target is empty, before anything in it changes. Resolves to true if it contains an unfinished copy. */
async function checkTarget(target: Database, progress: Progress, source: string): Promise<boolean> {
  const unfinished = await progress.source().catch((error) => {
    throw new DatabaseUnavailable("to", error);
  });
  if (unfinished === source) return true;
  if (unfinished !== undefined) {
    throw new CopyFailed(
      "other_source",
      `The target contains an unfinished copy of ${unfinished}. Finish that, or use an empty database.`,
    );
  }
  for (const name of await namesOf(target)) {
    if (await hasRows(target, name))
      throw new CopyFailed("not_empty", `The target isn't empty (${name} has rows). Use an empty database.`);
  }
  return false;
}

/** Returns the tables to copy. An engine may have tables that others don't need; they must be empty. */
async function plan(source: Database, target: Database): Promise<Table[]> {
  const [own, others] = [await tablesOf(source), await tablesOf(target)];
  const names = new Set(others.map(({ name }) => name));
  for (const { name } of own.filter((table) => !names.has(table.name))) {
    if (await hasRows(source, name)) {
      throw new CopyFailed(
        "pending_rows",
        `${name} in the source contains work that isn't done. Start a server on the source, stop it, and copy again.`,
      );
    }
  }
  const tables = own.filter((table) => names.has(table.name));
  for (const { name, columns } of tables) {
    const there = others.find((table) => table.name === name)?.columns;
    if (String(there) !== String(columns))
      throw new CopyFailed("different_schema", `${name} has other columns in the target.`);
  }
  return tables;
}

async function hasRows({ knex }: Database, table: string): Promise<boolean> {
  return (await knex(table).first(knex.raw("1 as found"))) !== undefined;
}

/** Copies the rows of a table that aren't copied yet. Resolves to the number of copied rows, also from earlier attempts. */
async function copyTable(
  source: Database,
  target: Database,
  progress: Progress,
  table: Table,
): Promise<number> {
  const { lastKey: start, rows: before } = await progress.of(table.name);
  let copied = before;
  for await (const { rows, lastKey } of batchesOf(source, table, start)) {
    await target.transaction(async (trx) => {
      await trx.raw(insertionOf(table, rows.length), [table.name, ...table.columns, ...rows.flat()] as never);
      await progress.advance(trx, table.name, lastKey, rows.length);
    });
    copied += rows.length;
  }
  return copied;
}

function insertionOf({ columns }: Table, count: number): string {
  const list = (mark: string) => `(${columns.map(() => mark).join(", ")})`;
  return `insert into ?? ${list("??")} values ${Array.from({ length: count }, () => list("?")).join(", ")}`;
}

/** Compares each table, as both databases return it now. */
async function verify(
  source: Database,
  target: Database,
  tables: Table[],
  { onTable }: CopyOptions,
): Promise<CopiedTable[]> {
  const copied: CopiedTable[] = [];
  for (const table of tables) {
    const [expected, actual] = await Promise.all([digestOf(source, table), digestOf(target, table)]);
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

async function record(target: Database, run: CommandRun): Promise<void> {
  const log = createOperatorLog(target, createAuditChain(target, createLeases(target)));
  await log.finish(await log.start(run));
}
