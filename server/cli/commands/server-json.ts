import { isIP } from "node:net";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { VERSION } from "../../version.ts";
import { type Command, CommandError } from "../execution/command.ts";

const SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
// The schema allows 100 characters.
const DESCRIPTION = "Create and manage short links, read their clicks, and send events to webhooks.";

export const serverJsonCommand: Command = {
  name: "mcp server-json",
  summary: "Print the server.json for the MCP registry",
  description: "Print the server.json that lists this service in the MCP registry",
  describe: (document) => JSON.stringify(document, null, 2),
  isReadOnly: true,
  needs: "nothing",
  run: async ({ urls }) => serverJson(urls),
};

/** Describes the MCP server at public addresses. Throws CommandError `not_public`. */
export function serverJson({ base, mcp }: PublicUrls) {
  return {
    $schema: SCHEMA,
    name: `${namespaceOf(base)}/linkgate`,
    title: "linkgate",
    description: DESCRIPTION,
    version: VERSION,
    websiteUrl: base,
    remotes: [{ type: "streamable-http", url: mcp }],
  };
}

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
