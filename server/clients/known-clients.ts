import { DEVICE_GRANT } from "../../adapters/oauth/oidc/clients.ts";

export type Document = Record<string, unknown>;

type KnownDocument = {
  client_id: string;
  client_name: string;
  redirect_uris: string[];
  token_endpoint_auth_method: "none" | "private_key_jwt";
  token_endpoint_auth_signing_alg?: "RS256";
  jwks_uri?: string;
};

/** The name of the command line. Its document is only here: RFC 6761 §6.4 reserves the domain. */
export const CLI_CLIENT = "https://cli.linkgate.invalid/client.json";

/**
 * Some hosts answer servers in data centers with 403. As of 2026-09-24 unless a comment says otherwise. A row needs
 * the client's own code or document, or two independent servers that verified it.
 */
const DOCUMENTS: readonly KnownDocument[] = [
  publicClient("linkgate CLI", CLI_CLIENT, ["http://127.0.0.1/callback"]),
  publicClient("Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata", [
    "https://claude.ai/api/mcp/auth_callback",
  ]),
  publicClient("Claude Code", "https://claude.ai/oauth/claude-code-client-metadata", [
    "http://localhost/callback",
    "http://127.0.0.1/callback",
  ]),
  {
    client_id: "https://chatgpt.com/oauth/client.json",
    client_name: "ChatGPT",
    redirect_uris: ["https://chatgpt.com/connector_platform_oauth_redirect"],
    token_endpoint_auth_method: "private_key_jwt",
    token_endpoint_auth_signing_alg: "RS256",
    jwks_uri: "https://chatgpt.com/oauth/jwks.json",
  },
  publicClient("Codex", "https://chatgpt.com/oauth/codex/client.json", [
    "http://127.0.0.1/callback",
    "http://localhost/callback",
  ]),
  publicClient("Visual Studio Code", "https://vscode.dev/oauth/client-metadata.json", [
    "http://127.0.0.1:33418/",
    "https://vscode.dev/redirect",
  ]),
  // 2026-11-24: the client ID and both redirect URIs are in the source of VS Code.
  publicClient("Visual Studio Code - Insiders", "https://insiders.vscode.dev/oauth/client-metadata.json", [
    "http://127.0.0.1:33418/",
    "https://insiders.vscode.dev/redirect",
  ]),
  // 2026-11-27: the program sends the second one.
  publicClient("GitHub Copilot CLI", "https://github.com/copilot/cli/client-metadata.json", [
    "http://127.0.0.1/",
    "http://127.0.0.1/callback",
  ]),
  publicClient("Zed", "https://zed.dev/oauth/client-metadata.json", ["http://127.0.0.1/callback"]),
  publicClient("OpenCode", "https://opencode.ai/oauth/opencode/client.json", [
    "http://127.0.0.1/callback",
    "http://localhost/callback",
    // 2026-11-24: where it still listens, see https://github.com/anomalyco/opencode/issues/50510.
    "http://127.0.0.1/mcp/oauth/callback",
  ]),
  // 2026-09-21
  publicClient("Goose", "https://goose-docs.ai/oauth/client-metadata.json", [
    "http://127.0.0.1/oauth_callback",
    "http://[::1]/oauth_callback",
  ]),
  // 2026-11-24: as two servers accept it. The document of www.notion.so is missing: its redirect URI could not be confirmed.
  publicClient("Notion", "https://app.notion.com/oauth/mcp-client-metadata.json", [
    "https://app.notion.com/workflows/mcp/oauth/callback",
  ]),
  // 2026-11-24: as two servers accept it.
  publicClient("Factory Droid", "https://api.factory.ai/mcp/oauth-client", ["http://127.0.0.1/callback"]),
  // 2026-11-24: from its source, which listens on ports 27890 to 27894.
  publicClient(
    "Hermes Agent",
    "https://nousresearch.github.io/hermes-agent/docs/oauth/client-metadata.json",
    ["http://127.0.0.1/callback", "http://localhost/callback"],
  ),
  // 2026-11-24: from its source and a server that keeps a copy, without the redirect URIs of its staging environment.
  publicClient("MCPJam", "https://www.mcpjam.com/.well-known/oauth/client-metadata.json", [
    "http://127.0.0.1:6274/oauth/callback",
    "http://127.0.0.1:6274/callback",
    "http://127.0.0.1:6274/oauth/callback/debug",
    "http://localhost:6274/oauth/callback",
    "http://localhost:6274/callback",
    "http://localhost:6274/oauth/callback/debug",
    "https://app.mcpjam.com/oauth/callback",
    "https://app.mcpjam.com/oauth/callback/debug",
  ]),
  // 2026-11-24: from its source, which listens on a free port.
  publicClient("ToolHive MCP Client", "https://toolhive.dev/oauth/client-metadata.json", [
    "http://localhost/callback",
  ]),
];

/** The part of a client ID and its redirect URI that stands for a server: 9 bytes in base64url. */
const SERVER_ID = "([\\w-]{12})";

/** OpenAI publishes one for each MCP server and answers for any ID, so the redirect URI must have the same one. */
const DOCUMENTS_PER_SERVER: readonly {
  clientId: RegExp;
  document(clientId: string, id: string): KnownDocument;
}[] = [
  {
    clientId: new RegExp(`^https://chatgpt\\.com/oauth/${SERVER_ID}/client\\.json$`),
    document: (clientId, id) => ({
      ...publicClient("ChatGPT", clientId, [`https://chatgpt.com/connector/oauth/${id}`]),
      // It may authenticate with its keys nevertheless.
      jwks_uri: "https://chatgpt.com/oauth/jwks.json",
    }),
  },
  {
    // Codex 0.148 to 0.153
    clientId: new RegExp(`^https://chatgpt\\.com/oauth/codex/${SERVER_ID}/client\\.json$`),
    document: (clientId, id) => publicClient("Codex", clientId, [`http://127.0.0.1/callback/${id}`]),
  },
];

export const KNOWN_DOCUMENTS: ReadonlyMap<string, Document> = new Map(
  DOCUMENTS.map((document) => [document.client_id, complete(document)]),
);

export function knownDocumentOf(clientId: string): Document | undefined {
  return KNOWN_DOCUMENTS.get(clientId) ?? documentPerServer(clientId);
}

export function documentPerServer(clientId: string): Document | undefined {
  for (const pattern of DOCUMENTS_PER_SERVER) {
    const id = pattern.clientId.exec(clientId)?.[1];
    if (id) return complete(pattern.document(clientId, id));
  }
  return undefined;
}

export const KNOWN_CLIENT_NAMES = new Intl.ListFormat("en-GB").format(
  DOCUMENTS.map(({ client_name }) => client_name),
);

function complete(document: KnownDocument): Document {
  const grant_types = ["authorization_code", "refresh_token", DEVICE_GRANT];
  return { ...document, grant_types, response_types: ["code"] };
}

function publicClient(client_name: string, client_id: string, redirect_uris: string[]): KnownDocument {
  return { client_id, client_name, redirect_uris, token_endpoint_auth_method: "none" };
}
