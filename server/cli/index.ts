import { appCommands } from "./apps.ts";
import { auditCommands } from "./audit.ts";
import { backupCommands } from "./backup.ts";
import { clientKeyCommands } from "./client-keys.ts";
import { clientSwitchCommands } from "./client-switch.ts";
import { clientCommands } from "./clients.ts";
import { type Command, CommandError } from "./command.ts";
import { copyCommands } from "./copy.ts";
import { grantCommands } from "./grants.ts";
import { keyCommands } from "./keys.ts";
import { linkCommands } from "./links.ts";
import { hasFailed, maintenanceCommands } from "./maintenance.ts";
import { organizationCommands } from "./organizations.ts";
import { createProgram, isHelp } from "./program.ts";
import { mcpCommands } from "./server-json.ts";
import { suspensionCommands } from "./suspension.ts";
import { trustCommands } from "./trust.ts";
import { userAccessCommands } from "./user-access.ts";
import { userCommands } from "./users.ts";

const commands: Command[] = [
  ...maintenanceCommands,
  ...backupCommands,
  ...copyCommands,
  ...organizationCommands,
  ...suspensionCommands,
  ...appCommands,
  ...clientCommands,
  ...clientSwitchCommands,
  ...clientKeyCommands,
  ...keyCommands,
  ...trustCommands,
  ...userCommands,
  ...userAccessCommands,
  ...linkCommands,
  ...grantCommands,
  ...auditCommands,
  ...mcpCommands,
];

/** Runs one command: prints its result on stdout and exits with 0, or one error on stderr and exits with 1. */
async function main(argv: string[]): Promise<void> {
  const isJson = argv.includes("--json");
  const program = createProgram(commands, async (command, args, options) => {
    // Help and usage errors appear without loading the database.
    const { runCommand } = await import("./run.ts");
    const note = (text: string) => void (isJson || console.error(text));
    const result = await runCommand(command, { args, options, note });
    console.log(toText(result, isJson, command));
    if (hasFailed(result)) process.exitCode = 1;
  });
  if (argv.length === 0) return program.outputHelp();
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (isHelp(error)) return;
    process.exitCode = 1;
    const { message } = error as Error;
    const code = error instanceof CommandError ? error.code : "failed";
    console.error(isJson ? JSON.stringify({ error: { code, message } }) : message);
  }
}

function toText(result: object, isJson: boolean, { isDocument }: Command): string {
  if (isJson) return JSON.stringify(result);
  return isDocument ? JSON.stringify(result, null, 2) : toLines(result).join("\n");
}

/** Formats a result for a terminal: one `name: value` per line, nested values indented. */
function toLines(value: object, indent = ""): string[] {
  return Object.entries(value).flatMap(([name, item]) => {
    if (item === null || item === undefined) return [`${indent}${name}: -`];
    if (typeof item !== "object") return [`${indent}${Array.isArray(value) ? "-" : `${name}:`} ${item}`];
    const inner = toLines(item, `${indent}  `);
    return Array.isArray(value)
      ? [`${indent}-`, ...inner]
      : [`${indent}${name}:${inner.length ? "" : " none"}`, ...inner];
  });
}

await main(process.argv.slice(2));
