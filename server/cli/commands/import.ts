import { createReadStream, rmSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import { finished } from "node:stream/promises";
import { OPERATOR } from "../../../resources/events/types.ts";
import { Problem } from "../../../resources/http/problem.ts";
import { REFUSAL_COLUMNS } from "../../../resources/links/import/csv-file.ts";
import { createImportLinks, type RowResult, reportToJson } from "../../../resources/links/import/index.ts";
import { readLinkFile } from "../../../resources/links/import/read-file.ts";
import { reservedNamesOf } from "../../../resources/links/rules.ts";
import { csvHeader, toCsv } from "../../csv.ts";
import type { Settings } from "../../settings/config.ts";
import {
  type Command,
  type CommandContext,
  CommandError,
  EXAMPLE_ORG,
  findOrganization,
  missingOption,
  ORG_ID,
} from "../execution/command.ts";
import { createProgress, number, untilInterrupted } from "../execution/progress.ts";

// SQLite combines at most 500 rows in a statement.
const BATCH = 500;
// So many refusals are shown. The others are in the file of `--rejected`.
const SHOWN = 10;

type ImportResult = ReturnType<typeof reportToJson> & {
  dry_run: boolean;
  refusals: { row: number; reason: string; url: string; slug: string }[];
};

export const importCommand: Command = {
  name: "import",
  summary: "Import links from a CSV or JSON file",
  description:
    "Import links from a CSV or JSON file of Bitly, Dub, Shlink, YOURLS, Kutt, Short.io or linkgate",
  arguments: { "<file>": "the file; its format is recognized by its columns" },
  options: {
    "--org <org-id>": ORG_ID,
    "--dry-run": "check every row, and store nothing",
    "--rejected <file>": "write the refused rows to a new CSV file, with the reasons",
  },
  example: `links.csv --org ${EXAMPLE_ORG}`,
  describe: (result) => describe(result as ImportResult),
  run: importFile,
};

async function importFile({
  args: [file],
  options,
  settings,
  storage,
  urls,
  note,
}: CommandContext): Promise<ImportResult> {
  const { org, dryRun: isTrial = false, rejected } = options;
  if (typeof org !== "string") throw missingOption("usage", "--org <org-id>");
  const { id: organizationId } = await findOrganization(storage, org);
  await checkFile(file, settings);
  const shown: ImportResult["refusals"] = [];
  const printProgress = createProgress("rows");
  const importLinks = createImportLinks(storage, reservedNamesOf(urls), (_, work) => work(), BATCH);
  let done = 0;
  printProgress(done, 0);
  try {
    const linkFile = await readLinkFile(() => createReadStream(file));
    const refusals =
      typeof rejected === "string" ? await createRefusalFile(rejected, linkFile.columns) : undefined;
    const onInterrupt = () => {
      refusals?.discard();
      note(`Stopped after ${number(done)} rows.${isTrial ? "" : " Run the command again to continue."}`);
    };
    const work = importLinks({ organizationId, actor: OPERATOR }, linkFile, {
      isTrial: Boolean(isTrial),
      async onRow({ row, result, reason = "", url, slug }: RowResult, { cells }) {
        if (result !== "refused") return;
        if (shown.length < SHOWN) shown.push({ row, reason, url, slug });
        await refusals?.add([row, reason, ...cells.map(toText)]);
      },
      onBatch(rows, { share }) {
        done = rows;
        printProgress(done, share);
      },
    });
    const report = await untilInterrupted(work, onInterrupt);
    await refusals?.close();
    if (report.rows > 0 && report.refused === report.rows) process.exitCode = 1;
    return { dry_run: Boolean(isTrial), ...reportToJson(report), refusals: shown };
  } catch (error) {
    if (error instanceof Problem) throw new CommandError(error.code, error.message.replace(/^file: /, ""));
    throw (error as NodeJS.ErrnoException).path === file ? unreadable(error) : error;
  }
}

/** Throws CommandError for a file that can't be read twice, and for the database: closing it would drop SQLite's locks. */
async function checkFile(file: string, { DATABASE_URL }: Settings): Promise<void> {
  const found = await stat(file).catch((error) => {
    throw unreadable(error);
  });
  if (found.isDirectory()) throw new CommandError("file_not_found", `${file} is a folder.`);
  if (!found.isFile())
    throw new CommandError("invalid_file", `${file} is a pipe or a device. Save the links to a file first.`);
  // Not above, so the help loads no database.
  const { engineOf, sqliteFile } = await import("../../../adapters/database/engine.ts");
  if (engineOf(DATABASE_URL) !== "sqlite") return;
  for (const suffix of ["", "-wal", "-shm"]) {
    const { ino, dev } = (await stat(sqliteFile(DATABASE_URL) + suffix).catch(() => undefined)) ?? {};
    if (ino === found.ino && dev === found.dev)
      throw new CommandError("invalid_file", `${file} belongs to the database of this service.`);
  }
}

function unreadable(error: unknown): CommandError {
  return new CommandError("file_not_found", `Can't read the file: ${(error as Error).message}.`);
}

/** Creates a file from which the repaired rows can be imported. Throws CommandError `file_exists`. */
async function createRefusalFile(name: string, columns: string[]) {
  const handle = await open(name, "wx").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST")
      throw new CommandError("file_exists", `${name} exists. Choose another name.`);
    throw new CommandError("failed", `Can't write ${name}: ${error.message}.`);
  });
  const output = handle.createWriteStream();
  output.write(csvHeader([...REFUSAL_COLUMNS, ...columns]));
  return {
    async add(cells: unknown[]) {
      if (!output.write(toCsv([cells])))
        await new Promise<void>((resolve) => output.once("drain", () => resolve()));
    },
    /** Repeating the import refuses the same rows, and may use the name again. */
    discard: () => rmSync(name),
    async close() {
      output.end();
      await finished(output);
    },
  };
}

/** Nested values of JSON are read from their text as well. */
function toText(cell: unknown): unknown {
  return typeof cell === "object" && cell !== null ? JSON.stringify(cell) : cell;
}

function describe(result: ImportResult): string {
  const { dry_run, format, rows, imported, skipped, refused, left, stopped, refusals } = result;
  const counts = [
    `Format: ${format}`,
    `Rows: ${number(rows)}`,
    `${dry_run ? "To import" : "Imported"}: ${number(imported)}`,
    `Already imported: ${number(skipped)}`,
    `Refused: ${number(refused)}`,
  ];
  if (stopped) counts.push(`Left: ${number(left)}. ${stopped.message} Then import the same file again.`);
  const lines = refusals.map(
    ({ row, reason, url, slug }) => `Row ${row}: ${reason} ${[slug, url].filter(Boolean).join(" → ")}`,
  );
  if (refused > lines.length)
    lines.push(`and ${number(refused - lines.length)} more. --rejected <file> lists all of them.`);
  return [...counts, ...lines].join("\n");
}
