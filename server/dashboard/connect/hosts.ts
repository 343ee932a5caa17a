/** An AI client that connects to the MCP server. `docs/mcp.md` has the steps of its user and its redirect URI, under its name. */
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
};

export const HOSTS: readonly Host[] = [
  { id: "claude", name: "Claude", identity: "document", isHosted: true },
  { id: "claude-code", name: "Claude Code", identity: "document" },
  { id: "chatgpt", name: "ChatGPT", identity: "document", isHosted: true },
  { id: "cursor", name: "Cursor", identity: "registration", installLink: cursorLink },
  { id: "vscode", name: "VS Code", identity: "registration or document", installLink: vscodeLink },
  { id: "codex", name: "Codex", identity: "document" },
  { id: "copilot", name: "GitHub Copilot CLI", identity: "document" },
  { id: "gemini", name: "Gemini CLI", identity: "registration" },
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
