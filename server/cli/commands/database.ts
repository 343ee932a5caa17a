import { type Command, CommandError } from "../execution/command.ts";
import { createProgress, number, shareOf } from "../execution/progress.ts";
import type { BackupResult, CopyResult } from "./backup-and-copy.ts";

// The modules that need the database are loaded when a command runs, so help appears quickly.
export const databaseCommands: Command[] = [
  {
    name: "migrate",
    summary: "Apply pending migrations",
    needs: "nothing",
    run: async (context) => (await import("./backup-and-copy.ts")).migrate(context),
  },
  {
    name: "sweep",
    summary: "Delete expired rows now",
    description: "Delete expired rows now; the server does this every minute",
    async run({ storage }) {
      const printProgress = createProgress("rows");
      const onProgress = (done: number, total: number) => printProgress(done, shareOf(done, total));
      const deleted = await storage.purgeExpired(undefined, onProgress);
      if (!deleted)
        throw new CommandError("busy", "Another process is deleting expired rows. Try again later.");
      return { deleted };
    },
  },
  {
    name: "backup",
    summary: "Back up a SQLite database while the server runs",
    arguments: { "<file>": "the backup, which must not exist yet" },
    options: {
      "--with-key":
        "copy the encryption key to <file>.key. Anyone with both files can read every secret in the database",
    },
    example: "backup.sqlite",
    describe: (result) => describeBackup(result as BackupResult),
    needs: "database",
    run: async (context) => (await import("./backup-and-copy.ts")).backUp(context),
  },
  {
    name: "copy",
    summary: "Copy the database to an empty one",
    description:
      "Copy the database to an empty one, on the same or another system; continues if it was interrupted",
    options: {
      "--from <url>": "the source. Stop every server that uses it",
      "--to <url>": "the target: an empty database, or one with an unfinished copy of the source",
    },
    example: "--from sqlite:data/linkgate.sqlite --to postgres://localhost/linkgate",
    describe: (result) => describeCopy(result as CopyResult),
    runAlone: async (input) => (await import("./backup-and-copy.ts")).copy(input),
  },
];

function describeBackup({ file, bytes, key_file }: BackupResult): string {
  const key = key_file ? `, and its encryption key to ${key_file}` : "";
  return `Backed up the database to ${file} (${(bytes / 1_000_000).toFixed(1)} MB)${key}.`;
}

function describeCopy({ from, to, tables }: CopyResult): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return `Copied ${tables.length} tables with ${number(rows)} rows from ${from} to ${to}, and verified them.`;
}
