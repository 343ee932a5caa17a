import {
  type CommandRun,
  CopyFailed,
  copyDatabase,
  DatabaseUnavailable,
  nameOf,
} from "../../adapters/copy/index.ts";
import { engineOf } from "../../adapters/database/engine.ts";
import { describeStartupError } from "../startup-errors.ts";
import { type Command, CommandError, type CommandInput } from "./command.ts";
import { whoRuns } from "./record-command.ts";

/** `copy` */
export const copyCommands: Command[] = [
  {
    name: "copy",
    summary:
      "Copy the database to an empty one, on the same or another system; continues if it was interrupted",
    options: {
      "--from <url>": "the source. Stop every server that uses it",
      "--to <url>": "the target: an empty database, or one with an unfinished copy of the source",
    },
    example: "--from sqlite:data/linkgate.sqlite --to postgres://localhost/linkgate",
    runAlone: copy,
  },
];

async function copy({ options, note }: CommandInput): Promise<object> {
  const urls = { from: urlOf(options, "from"), to: urlOf(options, "to") };
  const [from, to] = [nameOf(urls.from), nameOf(urls.to)];
  const run: CommandRun = { command: "copy", arguments: [], options: { from, to }, ...whoRuns() };
  const onTable = (step: string, table: string, rows: number) => note(`${step} ${table}: ${rows} rows`);
  try {
    return { from, to, tables: await copyDatabase(urls.from, urls.to, { onTable, run }) };
  } catch (error) {
    if (error instanceof CopyFailed) throw new CommandError(error.code, error.message);
    if (!(error instanceof DatabaseUnavailable)) throw error;
    const message = describeStartupError(error.cause, urls[error.side]);
    throw message ? new CommandError("failed", message.replace("DATABASE_URL", `--${error.side}`)) : error;
  }
}

function urlOf(options: CommandInput["options"], name: "from" | "to"): string {
  const url = options[name];
  if (typeof url !== "string") throw new CommandError("usage", `Missing option --${name} <url>.`);
  try {
    if (engineOf(url) !== "sqlite") new URL(url);
    return url;
  } catch {
    throw new CommandError("invalid_url", `--${name} must start with sqlite:, postgres:// or mysql://.`);
  }
}
