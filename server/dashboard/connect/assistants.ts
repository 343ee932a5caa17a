import { type Host, SERVER_NAME } from "./host.ts";

const CLAUDE_REDIRECT = "https://claude.ai/api/mcp/auth_callback";

/** Claude on the web and in its apps, which all connect through claude.ai. */
export const claude: Host = {
  id: "claude",
  name: "Claude",
  identity: "document",
  isHosted: true,
  steps: (mcpUrl) => [
    {
      text: "On claude.ai or in Claude Desktop, open Customize → Connectors, select + and then Add custom connector. On a Team or Enterprise plan, an owner adds it first, under Organization settings → Connectors.",
    },
    { text: `Enter the name ${SERVER_NAME} and this URL. Leave the advanced settings empty.`, code: mcpUrl },
    { text: "Select Add, then Connect. The mobile apps use the same connectors." },
  ],
  ownClient: {
    redirectUri: CLAUDE_REDIRECT,
    steps: (mcpUrl, clientId) => [
      { text: "Under Customize → Connectors, add a custom connector with this URL.", code: mcpUrl },
      { text: "In its advanced settings, enter the client secret and this client ID.", code: clientId },
    ],
  },
};

/** ChatGPT on the web. */
export const chatgpt: Host = {
  id: "chatgpt",
  name: "ChatGPT",
  identity: "document",
  isHosted: true,
  steps: (mcpUrl) => [
    {
      text: "On the web, open Plugins, select + and then Add custom MCP server. In a workspace, an admin may have to allow this first.",
      link: { text: "Open Plugins", href: "https://chatgpt.com/plugins" },
    },
    { text: `Enter the name ${SERVER_NAME} and this server URL.`, code: mcpUrl },
    { text: "Select OAuth for authentication, and leave the client ID and secret empty." },
    { text: "Confirm the warning, select Create as a plugin, and install the plugin." },
  ],
};
