import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import Sqlite from "better-sqlite3";

/** A table and its number of rows. */
export type CountedTable = { name: string; rows: number };

/** A backup doesn't contain what the database did when it began. */
export class DamagedBackup extends Error {
  override readonly name = "DamagedBackup";
}

// About 4 MB. Between two steps, the process can be interrupted.
const PAGES_PER_STEP = 1000;

/**
 * Copies a SQLite database, with the state that it has at the beginning, while other processes write. Readers don't block
 * writers in WAL mode, and an open read transaction keeps SQLite from starting again after each write of another process
 * (https://sqlite.org/backup.html). The file appears under its name when it is complete, verified and on the disk.
 * @param target must not exist
 * @param stop ends it, and leaves no file
 * @returns the tables of the backup
 * @throws DamagedBackup
 */
export async function backUp(filename: string, target: string, stop?: AbortSignal): Promise<CountedTable[]> {
  const draft = `${target}.${process.pid}.partial`;
  closeSync(openSync(draft, "wx", 0o600));
  try {
    const tables = await copyPages(filename, draft, stop);
    verify(draft, tables);
    syncFile(draft);
    renameSync(draft, target);
    if (process.platform !== "win32") syncFile(path.dirname(target)); // Windows cannot open a directory
    return tables;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Copies all pages, and returns what the source contained when this began. */
async function copyPages(filename: string, draft: string, stop?: AbortSignal): Promise<CountedTable[]> {
  const source = new Sqlite(filename, { fileMustExist: true, readonly: true });
  try {
    source.exec("BEGIN");
    const tables = countRows(source);
    const progress = () => {
      stop?.throwIfAborted();
      return PAGES_PER_STEP;
    };
    await source.backup(draft, { progress });
    return tables;
  } finally {
    source.close();
  }
}

function verify(draft: string, expected: CountedTable[]): void {
  const backup = new Sqlite(draft);
  try {
    backup.pragma("journal_mode = DELETE"); // a single file
    const [problem] = backup.pragma("integrity_check(1)", { simple: false }) as { integrity_check: string }[];
    if (problem?.integrity_check !== "ok")
      throw new DamagedBackup(`integrity_check: ${problem?.integrity_check}`);
    const counted = new Map(countRows(backup).map(({ name, rows }) => [name, rows]));
    const different = expected.find(({ name, rows }) => counted.get(name) !== rows);
    if (different)
      throw new DamagedBackup(`${different.name}: ${counted.get(different.name)} of ${different.rows} rows`);
  } finally {
    backup.close();
  }
}

function countRows(connection: Sqlite.Database): CountedTable[] {
  const names = connection
    .prepare(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name",
    )
    .pluck()
    .all() as string[];
  return names.map((name) => ({
    name,
    rows: connection.prepare(`select count(*) from "${name}"`).pluck().get() as number,
  }));
}

function syncFile(name: string): void {
  const handle = openSync(name, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
