import { isIP } from "node:net";
import { OPERATOR } from "../../../resources/events/types.ts";
import { VERSION } from "../../version.ts";
import { type Command, CommandError, notFound } from "../execution/command.ts";
import { auditCommands } from "./audit.ts";
import { conformanceCommand } from "./conformance.ts";
import { databaseCommands } from "./database.ts";
import { devCommand } from "./dev.ts";
import { doctorCommand } from "./doctor.ts";
import { importCommand } from "./import.ts";
import { initCommand } from "./init.ts";
import { keyCommands } from "./keys.ts";
import { linkCommands } from "./links.ts";
import { listenCommand } from "./listen.ts";
import { operationCommands } from "./operations.ts";
import { organizationCommands } from "./organizations.ts";
import { upgradeCommand } from "./upgrade.ts";
import { userCommands } from "./users.ts";

const SERVER_JSON_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
// The schema allows 100 characters.
const DESCRIPTION = "Create and manage short links, read their clicks, and send events to webhooks.";

const serverJsonCommand: Command = {
  name: "mcp server-json",
  summary: "Print the server.json for the MCP registry",
  description: "Print the server.json that lists this service in the MCP registry",
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

const grantCommand: Command = {
  name: "grant revoke",
  summary: "Revoke an app's access for one user",
  description: "Revoke an app's access for one user, with all its tokens",
  arguments: {
    "<grant-id>": 'ID of the grant, as the audit log shows it; after "--" if it starts with a hyphen',
  },
  example: "Zr3vYb0aQn5fTtK1Zr3vYb0aQn5fTtK1Zr3vYb0aQn5",
  irreversible: () => "Revoke the app's access and all its tokens?",
  async run({ args: [id], storage }) {
    if (!(await storage.grants.revokeAny(id, OPERATOR))) throw notFound("Grant", id);
    return { revoked: id };
  },
};

const startCommand: Command = {
  name: "start",
  summary: "Start the server (default)",
  // Runs until a signal stops it.
  async runAlone() {
    await import("../../main.ts");
  },
};

export const commands: Command[] = [
  startCommand,
  initCommand,
  devCommand,
  ...databaseCommands,
  upgradeCommand,
  doctorCommand,
  ...organizationCommands,
  ...operationCommands,
  ...keyCommands,
  ...userCommands,
  ...linkCommands,
  importCommand,
  grantCommand,
  ...auditCommands,
  serverJsonCommand,
  listenCommand,
  conformanceCommand,
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
