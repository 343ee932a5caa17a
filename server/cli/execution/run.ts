import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { WrongEncryptionKey } from "../../../adapters/crypto/keys.ts";
import { isMissing } from "../../../adapters/database/engine.ts";
import { openStorage, type Storage } from "../../../adapters/index.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { createMissingKey, encryptionKeys, rejectLostDatabase } from "../../keys/encryption-keys.ts";
import { InvalidSettings, readSettings, type Settings } from "../../settings/config.ts";
import { publicUrlsOf } from "../../settings/public-urls.ts";
import { describeMissing, describeStartupError } from "../../startup-errors.ts";
import {
  type Command,
  CommandError,
  type CommandInput,
  type Planned,
  type StorageCommand,
} from "./command.ts";
import { recorded } from "./record-command.ts";

/** Throws CommandError if the settings are invalid or the database can't be used. */
export async function runCommand(command: Command, input: CommandInput): Promise<object | undefined> {
  if ("runAlone" in command) return command.runAlone(input);
  let databaseUrl: string | undefined;
  try {
    const settings = readSettings();
    databaseUrl = settings.DATABASE_URL;
    const urls = publicUrlsOf(settings, settings.PORT);
    rejectLostDatabase(settings);
    const needsExisting = command.needs === "database" || (command.needs === undefined && command.isReadOnly);
    if (needsExisting && isMissing(databaseUrl))
      throw new CommandError("no_database", describeMissing(databaseUrl));
    const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), {
      limitsOf,
      clickDetailDays: settings.CLICK_DETAIL_DAYS,
      timeoutMs: settings.DATABASE_TIMEOUT * 1000,
    });
    try {
      // A query would create a missing SQLite database.
      await confirm(command, isMissing(databaseUrl) ? input : { ...input, storage });
      await prepare(command, settings, storage);
      return await recorded(command, { ...input, settings, urls, storage, readPassword });
    } finally {
      await storage.close();
    }
  } catch (error) {
    if (error instanceof InvalidSettings) throw new CommandError("wrong_settings", error.message);
    if (error instanceof WrongEncryptionKey) throw new CommandError("wrong_encryption_key", error.message);
    const message = describeStartupError(error, databaseUrl);
    throw message ? new CommandError("failed", message) : error;
  }
}

/** Scripts, which have no terminal, aren't asked. Throws CommandError `canceled`. */
async function confirm({ irreversible }: Command, planned: Planned): Promise<void> {
  if (planned.options.yes || !process.stdin.isTTY || !process.stderr.isTTY) return;
  const question = await irreversible?.(planned);
  if (!question) return;
  process.stderr.write(`${question}\n`);
  const answer = await prompt("This can't be undone. [y/N]", false);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError("canceled", "Canceled.");
}

async function prepare(
  { needs, isReadOnly }: StorageCommand,
  settings: Settings,
  storage: Storage,
): Promise<void> {
  if (needs) return;
  if (!isReadOnly) {
    await storage.migrate();
    return createMissingKey(settings, storage);
  }
  await storage.newerMigrations(); // throws if this version can't use them
  const pending = await storage.pendingMigrations();
  if (pending.length > 0)
    throw new CommandError(
      "not_migrated",
      `The database has pending migrations (${pending.join(", ")}). Start the server or run "linkgate migrate" to apply them.`,
    );
}

/** Throws CommandError if the passwords don't match, or the prompt is canceled. */
async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).replace(/\r?\n$/, "");
  const password = await prompt("Password:");
  if ((await prompt("Confirm password:")) !== password)
    throw new CommandError("invalid_password", "The passwords don't match.");
  return password;
}

/** Reads a line from the terminal. Throws CommandError `canceled`. */
export async function prompt(label: string, silent = true): Promise<string> {
  // Hides the input: the terminal doesn't echo it, but readline does.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // On stderr, because stdout carries the result.
  const output = silent ? nowhere : process.stderr;
  const input = createInterface({ input: process.stdin, output, terminal: true, prompt: `${label} ` });
  if (silent) process.stderr.write(`${label} `);
  else input.prompt();
  try {
    // Ctrl-C closes it, and so does Ctrl-D on an empty line.
    const answer = await new Promise<string>((resolve, reject) =>
      input.once("line", resolve).once("close", reject),
    );
    if (silent) process.stderr.write("\n"); // the terminal didn't show the one that the user typed
    return answer;
  } catch {
    process.stderr.write("\n");
    throw new CommandError("canceled", "Canceled.");
  } finally {
    input.close();
  }
}
