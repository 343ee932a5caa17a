import { isIP } from "node:net";
import { VERSION } from "../version.ts";
import { appCommands, grantCommands } from "./apps.ts";
import { verifyAttestationCommand } from "./attestation.ts";
import { auditCommands } from "./audit.ts";
import { clientCommands } from "./clients.ts";
import { type Command, CommandError } from "./command.ts";
import { conformanceCommand } from "./conformance.ts";
import { databaseCommands } from "./database.ts";
import { doctorCommand } from "./doctor.ts";
import { importCommand } from "./import.ts";
import { keyCommands } from "./keys.ts";
import { linkCommands } from "./links.ts";
import { listenCommand } from "./listen.ts";
import { organizationCommands } from "./organizations.ts";
import { createProgram, isHelp } from "./program.ts";
import { trustCommands } from "./trust.ts";
import { userCommands } from "./users.ts";

const SERVER_JSON_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
// The schema allows 100 characters.
const DESCRIPTION = "Create and manage short links, read their clicks, and send events to webhooks.";

const serverJsonCommand: Command = {
  name: "mcp server-json",
  summary: "Print the server.json that lists this service in the MCP registry",
  isDocument: true,
  isReadOnly: true,
  needs: "nothing",
  async run({ urls: { base, mcp } }) {
    return {
      $schema: SERVER_JSON_SCHEMA,
      name: `${namespaceOf(base)}/linkgate`,
      title: "linkgate",
      description: DESCRIPTION,
      version: VERSION,
      websiteUrl: base,
      remotes: [{ type: "streamable-http", url: mcp }],
    };
  },
};

const commands: Command[] = [
  ...databaseCommands,
  doctorCommand,
  ...organizationCommands,
  ...appCommands,
  ...clientCommands,
  ...keyCommands,
  ...trustCommands,
  ...userCommands,
  ...linkCommands,
  importCommand,
  ...grantCommands,
  ...auditCommands,
  serverJsonCommand,
  listenCommand,
  conformanceCommand,
  verifyAttestationCommand,
];

/** Reverse-DNS notation, which the registry verifies by DNS or HTTP. */
function namespaceOf(base: string): string {
  const { protocol, hostname } = new URL(base);
  const isPublic = protocol === "https:" && hostname.includes(".") && isIP(hostname) === 0;
  if (isPublic) return hostname.split(".").reverse().join(".");
  throw new CommandError(
    "not_public",
    `The registry lists public servers only, and the service's URL is ${base}. Set BASE_URL to an https URL with a domain name.`,
  );
}

async function main(argv: string[]): Promise<void> {
  const isJson = argv.includes("--json");
  const program = createProgram(commands, async (command, args, options) => {
    // Help and usage errors appear without loading the database.
    const { runCommand } = await import("./run.ts");
    const note = (text: string) => void (isJson || console.error(text));
    const print = (part: object, text: string) => console.log(isJson ? JSON.stringify(part) : text);
    const result = await runCommand(command, { args, options, note, print });
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

function toText(result: object, isJson: boolean, { isDocument, describe }: Command): string {
  if (isJson) return JSON.stringify(result);
  if (describe) return describe(result);
  return isDocument ? JSON.stringify(result, null, 2) : toLines(result).join("\n");
}

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

function hasFailed(result: object): boolean {
  type Outcome = { ok?: boolean; verdict?: string };
  type Results = { checks?: Outcome[]; logs?: Outcome[]; stopped?: object };
  const { checks = [], logs = [], stopped } = result as Results;
  if (stopped) return true;
  return [...checks, ...logs].some(({ ok, verdict }) => ok === false || verdict === "failed");
}

await main(process.argv.slice(2));
