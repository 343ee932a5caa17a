/** An AI client that connects to the MCP server. The steps of its user are in `docs/mcp.md`, under its name. */
export type Host = {
  /** The value of `host` in the URL of its tab. */
  id: string;
  name: string;
  /** `registration or document` registers if the server offers that. */
  identity: "document" | "registration" | "registration or document" | "any";
  /** It connects from its vendor's servers instead of the user's computer. */
  isHosted?: true;
  /** Returns the link that installs the server in it. */
  installLink?: (mcpUrl: string) => string;
  /** Set if it accepts a client ID and secret. */
  redirectUri?: string;
};

export const HOSTS: readonly Host[] = [
  {
    id: "claude",
    name: "Claude",
    identity: "document",
    isHosted: true,
    redirectUri: "https://claude.ai/api/mcp/auth_callback",
  },
  {
    id: "claude-code",
    name: "Claude Code",
    identity: "document",
    redirectUri: "http://localhost:8976/callback",
  },
  { id: "chatgpt", name: "ChatGPT", identity: "document", isHosted: true },
  {
    id: "cursor",
    name: "Cursor",
    identity: "registration",
    installLink: cursorLink,
    redirectUri: "http://localhost:8787/callback",
  },
  {
    id: "vscode",
    name: "VS Code",
    identity: "registration or document",
    installLink: vscodeLink,
    redirectUri: "http://127.0.0.1:33418/",
  },
  { id: "codex", name: "Codex", identity: "document" },
  { id: "copilot", name: "GitHub Copilot CLI", identity: "document" },
  {
    id: "gemini",
    name: "Gemini CLI",
    identity: "registration",
    redirectUri: "http://localhost:7777/oauth/callback",
  },
  { id: "zed", name: "Zed", identity: "document" },
  { id: "opencode", name: "OpenCode", identity: "document" },
  { id: "goose", name: "Goose", identity: "document", installLink: gooseLink },
  { id: "other", name: "Other clients", identity: "any" },
];

/** https://cursor.com/docs/mcp/install-links */
function cursorLink(url: string): string {
  const config = Buffer.from(JSON.stringify({ url })).toString("base64");
  return `cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name: "linkgate", config })}`;
}

/** https://code.visualstudio.com/api/extension-guides/ai/mcp */
function vscodeLink(url: string): string {
  return `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: "linkgate", type: "http", url }))}`;
}

function gooseLink(url: string): string {
  return `goose://extension?url=${encodeURIComponent(url)}&type=streamable_http&id=linkgate&name=linkgate&description=Short%20links%20and%20their%20clicks`;
}
