import { WrongEncryptionKey } from "../../adapters/crypto/keys.ts";
import { openStorage } from "../../adapters/index.ts";
import { InvalidSettings, readSettings } from "../config.ts";
import { encryptionKeys } from "../keys/encryption-keys.ts";
import { rejectLostDatabase } from "../keys/lost-database.ts";
import { describeStartupError } from "../startup-errors.ts";
import { type Command, CommandError, type CommandInput } from "./command.ts";
import { readPassword } from "./password-prompt.ts";
import { recorded } from "./record-command.ts";

/**
 * Runs a command and returns its result. Opens the database of the settings, unless the command names its own.
 * @throws CommandError if the settings are invalid or the database can't be used
 */
export async function runCommand(command: Command, input: CommandInput): Promise<object> {
  if ("runAlone" in command) return command.runAlone(input);
  let databaseUrl: string | undefined;
  try {
    const settings = readSettings();
    databaseUrl = settings.DATABASE_URL;
    rejectLostDatabase(settings);
    const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), {
      timeoutMs: settings.DATABASE_TIMEOUT * 1000,
    });
    try {
      if (command.migrates) await storage.migrate();
      return await recorded(command, { ...input, settings, storage, readPassword });
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
