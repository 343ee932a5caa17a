import { quoted } from "../../docs/examples.ts";
import { pretty } from "../../docs/prose.ts";
import { type Host, SERVER_NAME } from "./host.ts";
import { cursorLink, vscodeLink, vscodeServer } from "./install-links.ts";

const SCOPES = ["links:read", "links:write"];

/** Cursor, which registers itself and reads no metadata document. */
export const cursor: Host = {
  id: "cursor",
  name: "Cursor",
  identity: "registration",
  steps: (mcpUrl) => [
    {
      text: "Install the server in Cursor and confirm.",
      link: { text: "Install in Cursor", href: cursorLink(mcpUrl) },
    },
    {
      text: "Or add it to `~/.cursor/mcp.json` yourself.",
      code: pretty({ mcpServers: { [SERVER_NAME]: { url: mcpUrl } } }),
    },
    { text: `In Cursor’s settings, under Tools & MCP, select Connect next to ${SERVER_NAME}.` },
  ],
  ownClient: {
    redirectUri: "http://localhost:8787/callback",
    steps: (mcpUrl, clientId) => [
      {
        text: "Set the environment variable `LINKGATE_CLIENT_SECRET`, and add the server to `~/.cursor/mcp.json`.",
        code: pretty({
          mcpServers: {
            [SERVER_NAME]: {
              url: mcpUrl,
              auth: {
                CLIENT_ID: clientId,
                // biome-ignore lint/suspicious/noTemplateCurlyInString: Cursor replaces it with the variable.
                CLIENT_SECRET: "${env:LINKGATE_CLIENT_SECRET}",
                scopes: SCOPES,
              },
            },
          },
        }),
      },
      { text: `In Cursor’s settings, under Tools & MCP, select Connect next to ${SERVER_NAME}.` },
    ],
  },
};

/** Visual Studio Code with GitHub Copilot. */
export const vscode: Host = {
  id: "vscode",
  name: "VS Code",
  identity: "registration or document",
  steps: (mcpUrl) => [
    {
      text: "Install the server in VS Code and confirm.",
      link: { text: "Install in VS Code", href: vscodeLink(mcpUrl) },
    },
    { text: "Or run this in a terminal.", code: `code --add-mcp ${quoted(vscodeServer(mcpUrl))}` },
    { text: `Run \`MCP: List Servers\` from the Command Palette, select ${SERVER_NAME} and start it.` },
  ],
  ownClient: {
    redirectUri: "http://127.0.0.1:33418/",
    steps: (mcpUrl, clientId) => [
      { text: "Run this in a terminal.", code: `code --add-mcp ${quoted(vscodeServer(mcpUrl))}` },
      {
        text: "Start the server with `MCP: List Servers`. When VS Code asks, enter the client secret and this client ID.",
        code: clientId,
      },
    ],
  },
};

/** Zed, which accepts no client ID of the user's. */
export const zed: Host = {
  id: "zed",
  name: "Zed",
  identity: "document",
  steps: (mcpUrl) => [
    {
      text: "Run `zed: open settings file` from the command palette, and add this.",
      code: pretty({ context_servers: { [SERVER_NAME]: { url: mcpUrl } } }),
    },
    { text: `Under Settings → AI → MCP Servers, authenticate ${SERVER_NAME}.` },
  ],
};
