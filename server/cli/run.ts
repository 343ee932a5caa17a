import { WrongEncryptionKey } from "../../adapters/crypto/keys.ts";
import { openStorage } from "../../adapters/index.ts";
import { InvalidSettings, readSettings } from "../config.ts";
import { encryptionKeys } from "../keys/encryption-keys.ts";
import { describeStartupError } from "../startup-errors.ts";
import { type Command, type CommandContext, CommandError } from "./command.ts";
import { readPassword } from "./password-prompt.ts";
import { recorded } from "./record-command.ts";

/**
 * Opens the database of the settings, runs a command, and returns its result.
 * @throws CommandError if the settings are invalid or the database can't be used
 */
export async function runCommand(
  command: Command,
  input: Pick<CommandContext, "args" | "options" | "note">,
): Promise<object> {
  try {
    const settings = readSettings();
    const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings));
    try {
      if (command.migrates) await storage.migrate();
      return await recorded(command, { ...input, settings, storage, readPassword });
    } catch (error) {
      const message = describeStartupError(error, settings.DATABASE_URL);
      throw message ? new CommandError("failed", message) : error;
    } finally {
      await storage.close();
    }
  } catch (error) {
    if (error instanceof InvalidSettings) throw new CommandError("wrong_settings", error.message);
    if (error instanceof WrongEncryptionKey) throw new CommandError("wrong_encryption_key", error.message);
    throw error;
  }
}
