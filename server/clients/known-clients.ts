import type { Document } from "./document-metadata.ts";

/** The parts of a client's metadata document that matter here, as RFC 7591 §2 names them. */
type KnownDocument = {
  client_id: string;
  client_name: string;
  redirect_uris: string[];
  token_endpoint_auth_method: "none" | "private_key_jwt";
  token_endpoint_auth_signing_alg?: "RS256";
  jwks_uri?: string;
};

/**
 * Copies of the documents that widely used AI clients publish, so that these connect without a fetch. Some of their hosts
 * answer servers in data centers with 403. They are as of 2026-09-24, that of GitHub Copilot CLI as of 2026-09-18, and that
 * of Goose as of 2026-09-21.
 */
const DOCUMENTS: readonly KnownDocument[] = [
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
  // It listens on any port, like the others on loopback.
  publicClient("GitHub Copilot CLI", "https://github.com/copilot/cli/client-metadata.json", [
    "http://127.0.0.1:33418/",
  ]),
  publicClient("Zed", "https://zed.dev/oauth/client-metadata.json", ["http://127.0.0.1/callback"]),
  publicClient("OpenCode", "https://opencode.ai/oauth/opencode/client.json", [
    "http://127.0.0.1/callback",
    "http://localhost/callback",
  ]),
  publicClient("Goose", "https://goose-docs.ai/oauth/client-metadata.json", [
    "http://127.0.0.1/oauth_callback",
    "http://[::1]/oauth_callback",
  ]),
];

/** The same documents by client id, complete. */
export const KNOWN_DOCUMENTS: ReadonlyMap<string, Document> = new Map(
  DOCUMENTS.map((document) => [
    document.client_id,
    { ...document, grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] },
  ]),
);

/** The names of the known clients, as a list in a sentence. */
export const KNOWN_CLIENT_NAMES = new Intl.ListFormat("en-GB").format(
  DOCUMENTS.map(({ client_name }) => client_name),
);

function publicClient(client_name: string, client_id: string, redirect_uris: string[]): KnownDocument {
  return { client_id, client_name, redirect_uris, token_endpoint_auth_method: "none" };
}
