import { closeSync, openSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { syncFile, syncFolder } from "../../durable-files.ts";

type CountedTable = { name: string; rows: number };

/** What was copied so far, in bytes. */
export type OnBackUp = (done: number, total: number) => void;

/** A backup doesn't contain what the database did when it began. */
export class DamagedBackup extends Error {
  override readonly name = "DamagedBackup";
}

// About 4 MB. Between two steps, the process can be interrupted.
const PAGES_PER_STEP = 1000;

/**
 * Copies the present state to a file that must not exist, and appears when complete and on the disk. An open read
 * keeps SQLite from starting again after each write (https://sqlite.org/backup.html). Throws DamagedBackup.
 */
export async function backUp(
  filename: string,
  target: string,
  stop?: AbortSignal,
  onProgress?: OnBackUp,
): Promise<CountedTable[]> {
  const draft = `${target}.${process.pid}.partial`;
  closeSync(openSync(draft, "wx", 0o600));
  try {
    const tables = await copyPages(filename, draft, stop, onProgress);
    verify(draft, tables);
    syncFile(draft);
    renameSync(draft, target);
    syncFolder(path.dirname(target));
    return tables;
  } finally {
    rmSync(draft, { force: true });
  }
}

async function copyPages(
  filename: string,
  draft: string,
  stop?: AbortSignal,
  onProgress?: OnBackUp,
): Promise<CountedTable[]> {
  const source = new Sqlite(filename, { fileMustExist: true, readonly: true });
  try {
    source.exec("BEGIN");
    const tables = countRows(source);
    const pageSize = source.pragma("page_size", { simple: true }) as number;
    const progress = ({ totalPages, remainingPages }: Sqlite.BackupMetadata) => {
      stop?.throwIfAborted();
      onProgress?.((totalPages - remainingPages) * pageSize, totalPages * pageSize);
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
