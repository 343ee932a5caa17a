import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  openSync,
  statSync,
} from "node:fs";
import path from "node:path";
import {
  type CommandRun,
  CopyFailed,
  copyDatabase,
  DatabaseUnavailable,
  nameOf,
} from "../../../adapters/copy/index.ts";
import { engineOf } from "../../../adapters/database/engine.ts";
import { createMissingKey, keyFileOf } from "../../keys/encryption-keys.ts";
import { describeMissingDriver } from "../../settings/optional-packages.ts";
import { describeStartupError } from "../../startup-errors.ts";
import { type CommandContext, CommandError, type CommandInput, missingOption } from "../execution/command.ts";
import { createProgress, number, shareOf, untilInterrupted } from "../execution/progress.ts";
import { whoRuns } from "../execution/record-command.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const OTHER_ENGINES: Record<string, string> = { postgres: "pg_dump", mysql: "mariadb-dump" };

type Tables = { name: string; rows: number }[];
export type BackupResult = { file: string; bytes: number; key_file?: string; tables: Tables };
export type CopyResult = { from: string; to: string; tables: Tables };

export async function migrate({ settings, storage }: CommandContext): Promise<object> {
  const applied = await storage.migrate();
  await createMissingKey(settings, storage);
  return { applied };
}

/** Backs up a SQLite database, and its key with `--with-key`. */
export async function backUp({ args, options, settings, storage }: CommandContext): Promise<BackupResult> {
  const tool = OTHER_ENGINES[storage.engine];
  if (tool) throw new CommandError("not_sqlite", `Use ${tool}, as described in docs/operate/backup.md.`);
  const file = path.resolve(args[0]);
  const keyFile = options.withKey ? keyFileOf(settings) : undefined;
  if (options.withKey && !keyFile)
    throw new CommandError("no_key_file", "The key is in ENCRYPTION_KEY, so there is no file to copy.");
  for (const name of keyFile ? [file, `${file}.key`] : [file])
    if (existsSync(name)) throw new CommandError("file_exists", `${name} exists. Choose another name.`);
  if ((await storage.pendingMigrations()).includes("0001_service"))
    throw new CommandError("no_database", "DATABASE_URL: there is no database to back up.");
  const stopping = new AbortController();
  const stop = (signal: NodeJS.Signals) => stopping.abort(new Error(`interrupted by ${signal}`));
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    const printProgress = createProgress("MB");
    const tables = await storage.backUp(file, stopping.signal, (done, total) =>
      printProgress(done / 1_000_000, shareOf(done, total)),
    );
    if (keyFile) copyKey(keyFile, `${file}.key`);
    return { file, bytes: statSync(file).size, ...(keyFile && { key_file: `${file}.key` }), tables };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? `${path.dirname(file)} doesn't exist.` : message;
    throw new CommandError("backup_failed", `The backup failed: ${reason}`);
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

function copyKey(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL);
  const handle = openSync(to, "r");
  fchmodSync(handle, 0o600);
  fsyncSync(handle);
  closeSync(handle);
}

/** Copies a database to an empty one. */
export async function copy({ options, note }: CommandInput): Promise<CopyResult> {
  const urls = { from: urlOf(options, "from"), to: urlOf(options, "to") };
  const [from, to] = [nameOf(urls.from), nameOf(urls.to)];
  const run: CommandRun = { command: "copy", arguments: [], options: { from, to }, ...whoRuns() };
  const onTable = (step: string, table: string, rows: number) => {
    if (!process.stderr.isTTY) note(`${step} ${table}: ${rows} rows`); // a terminal shows the bar instead
  };
  const printProgress = createProgress("rows");
  let rows = 0;
  const onProgress = (done: number, total: number) => {
    rows = done;
    printProgress(done, shareOf(done, total));
  };
  const onInterrupt = () => note(`Stopped after ${number(rows)} rows. Run the command again to continue.`);
  try {
    const copying = copyDatabase(urls.from, urls.to, { onTable, onProgress, run });
    return { from, to, tables: await untilInterrupted(copying, onInterrupt) };
  } catch (error) {
    if (error instanceof CopyFailed) throw new CommandError(error.code, error.message);
    if (!(error instanceof DatabaseUnavailable)) throw error;
    const message = describeStartupError(error.cause, urls[error.side]);
    throw message ? new CommandError("failed", message.replace("DATABASE_URL", `--${error.side}`)) : error;
  }
}

function urlOf(options: CommandInput["options"], name: "from" | "to"): string {
  const url = options[name];
  if (typeof url !== "string") throw missingOption("usage", `--${name} <url>`);
  try {
    if (engineOf(url) !== "sqlite") new URL(url);
  } catch {
    throw new CommandError("invalid_url", `--${name} must start with sqlite:, postgres:// or mysql://.`);
  }
  const missing = describeMissingDriver(`--${name}`, url);
  if (missing) throw new CommandError("missing_package", `${missing}.`);
  return url;
}
