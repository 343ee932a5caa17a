import { WrongEncryptionKey } from "../../adapters/crypto/keys.ts";
import { openStorage } from "../../adapters/index.ts";
import { InvalidSettings, readSettings } from "../config.ts";
import { encryptionKey } from "../encryption-key.ts";
import { describeStartupError } from "../startup-errors.ts";
import { clientCommands } from "./clients.ts";
import { type Command, CommandError } from "./command.ts";
import { hasFailed, maintenanceCommands } from "./maintenance.ts";
import { organizationCommands } from "./organizations.ts";
import { readPassword } from "./password-prompt.ts";
import { createProgram, isHelp } from "./program.ts";
import { userCommands } from "./users.ts";

const commands: Command[] = [
  ...maintenanceCommands,
  ...organizationCommands,
  ...clientCommands,
  ...userCommands,
];

/** Runs one command: prints its result on stdout and exits with 0, or one error on stderr and exits with 1. */
async function main(argv: string[]): Promise<void> {
  const isJson = argv.includes("--json");
  const program = createProgram(commands, async (command, args, options) => {
    const result = await run(command, args, options, isJson);
    console.log(isJson ? JSON.stringify(result) : toLines(result).join("\n"));
    if (hasFailed(result)) process.exitCode = 1;
  });
  if (argv.length === 0) return program.outputHelp();
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (isHelp(error)) return;
    process.exitCode = 1;
    const { code, message } = describe(error as Error);
    console.error(isJson ? JSON.stringify({ error: { code, message } }) : message);
  }
}

async function run(
  command: Command,
  args: string[],
  options: Record<string, string>,
  isJson: boolean,
): Promise<object> {
  const settings = readSettings();
  const storage = openStorage(settings.DATABASE_URL, encryptionKey(settings));
  try {
    if (command.migrates) await storage.migrate();
    return await command.run({
      args,
      options,
      settings,
      storage,
      readPassword,
      note: (text) => isJson || console.error(text),
    });
  } catch (error) {
    const message = describeStartupError(error, settings.DATABASE_URL);
    throw message ? new CommandError("failed", message) : error;
  } finally {
    await storage.close();
  }
}

function describe(error: Error): { code: string; message: string } {
  if (error instanceof CommandError) return { code: error.code, message: error.message };
  if (error instanceof InvalidSettings) return { code: "wrong_settings", message: error.message };
  if (error instanceof WrongEncryptionKey) return { code: "wrong_encryption_key", message: error.message };
  return { code: "failed", message: error.message };
}

/** Formats a result for a terminal: one `name: value` per line, nested values indented. */
function toLines(value: object, indent = ""): string[] {
  return Object.entries(value).flatMap(([name, item]) => {
    if (item === null || item === undefined) return [`${indent}${name}: -`];
    if (typeof item !== "object") return [`${indent}${name}: ${item}`];
    const inner = toLines(item, `${indent}  `);
    return Array.isArray(value)
      ? [`${indent}-`, ...inner]
      : [`${indent}${name}:${inner.length ? "" : " none"}`, ...inner];
  });
}

await main(process.argv.slice(2));
