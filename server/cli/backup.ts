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
import { keyFileOf } from "../keys/encryption-keys.ts";
import { type Command, type CommandContext, CommandError } from "./command.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const OTHER_ENGINES: Record<string, string> = { postgres: "pg_dump", mysql: "mariadb-dump" };

/** `backup` */
export const backupCommands: Command[] = [
  {
    name: "backup",
    summary: "Back up a SQLite database while the server runs",
    arguments: { "<file>": "the backup, which must not exist yet" },
    options: {
      "--with-key":
        "copy the encryption key to <file>.key. Anyone with both files can read every secret in the database",
    },
    example: "backup.sqlite",
    needs: "database",
    run: backUp,
  },
];

async function backUp({ args, options, settings, storage }: CommandContext): Promise<object> {
  const tool = OTHER_ENGINES[storage.engine];
  if (tool) throw new CommandError("not_sqlite", `Use ${tool}, as described in docs/operate/backup.md.`);
  const file = path.resolve(args[0] as string);
  const keyFile = options.withKey ? keyFileOf(settings) : undefined;
  if (options.withKey && !keyFile)
    throw new CommandError("no_key_file", "The key is in ENCRYPTION_KEY, so there is no file to copy.");
  for (const name of keyFile ? [file, `${file}.key`] : [file]) rejectExisting(name);
  if ((await storage.pendingMigrations()).includes("0001_service"))
    throw new CommandError("no_database", "DATABASE_URL: there is no database to back up.");
  const stopping = new AbortController();
  const stop = (signal: NodeJS.Signals) => stopping.abort(new Error(`interrupted by ${signal}`));
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    const tables = await storage.backUp(file, stopping.signal);
    if (keyFile) copyKey(keyFile, `${file}.key`);
    return { file, bytes: statSync(file).size, ...(keyFile && { key_file: `${file}.key` }), tables };
  } catch (error) {
    throw new CommandError("backup_failed", `The backup failed: ${(error as Error).message}`);
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

function rejectExisting(file: string): void {
  if (existsSync(file)) throw new CommandError("file_exists", `${file} exists. Choose another name.`);
}

function copyKey(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL);
  const handle = openSync(to, "r");
  fchmodSync(handle, 0o600);
  fsyncSync(handle);
  closeSync(handle);
}
