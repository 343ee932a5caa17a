import { SERVER_NAME } from "./host.ts";

/** Returns the link that adds the MCP server to Cursor: https://cursor.com/docs/mcp/install-links. */
export function cursorLink(mcpUrl: string): string {
  const config = Buffer.from(JSON.stringify({ url: mcpUrl })).toString("base64");
  return `cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name: SERVER_NAME, config })}`;
}

/** Returns the configuration that VS Code's install link and its command line take. */
export function vscodeServer(mcpUrl: string): string {
  return JSON.stringify({ name: SERVER_NAME, type: "http", url: mcpUrl });
}

/** Returns the link that adds the MCP server to VS Code: https://code.visualstudio.com/api/extension-guides/ai/mcp. */
export function vscodeLink(mcpUrl: string): string {
  return `vscode:mcp/install?${encodeURIComponent(vscodeServer(mcpUrl))}`;
}

/** Returns the link that adds the MCP server to Goose as an extension. */
export function gooseLink(mcpUrl: string): string {
  const parameters = {
    url: mcpUrl,
    type: "streamable_http",
    id: SERVER_NAME,
    name: SERVER_NAME,
    description: "Short links and their clicks",
  };
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `goose://extension?${query.join("&")}`;
}
