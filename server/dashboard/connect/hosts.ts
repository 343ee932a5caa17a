/** `registration or document` registers if the server offers that. */
type Identity = "document" | "registration" | "registration or document" | "any";

/** An AI client that connects to the MCP server, and how its user sets it up. The steps are those of `toSteps`. */
export type Host = {
  /** The value of `host` in the URL of its tab. */
  id: string;
  name: string;
  identity: Identity;
  /** It connects from its vendor's servers instead of the user's computer. */
  isHosted?: true;
  steps: string[];
  /** How to use the organization's own client, if the host accepts a client ID and secret. */
  ownClient?: { redirectUri: string; steps: string[] };
};

const CLAUDE_CODE_SIGN_IN =
  "Sign in with this command, or enter `/mcp` in Claude Code.\nclaude mcp login linkgate";
const CURSOR_CONNECT = "In Cursor’s settings, under Tools & MCP, select Connect next to linkgate.";
const GEMINI_SIGN_IN = "Start Gemini CLI and enter this command.\n/mcp auth linkgate";

export const HOSTS: readonly Host[] = [
  {
    id: "claude",
    name: "Claude",
    identity: "document",
    isHosted: true,
    steps: [
      "On claude.ai or in Claude Desktop, open Customize → Connectors, select + and then Add custom connector. On a Team or Enterprise plan, an owner adds it first, under Organization settings → Connectors.",
      "Enter the name linkgate and this URL. Leave the advanced settings empty.\n{url}",
      "Select Add, then Connect. The mobile apps use the same connectors.",
    ],
    ownClient: {
      redirectUri: "https://claude.ai/api/mcp/auth_callback",
      steps: [
        "Under Customize → Connectors, add a custom connector with this URL.\n{url}",
        "In its advanced settings, enter the client secret and this client ID.\n{client_id}",
      ],
    },
  },
  {
    id: "claude-code",
    name: "Claude Code",
    identity: "document",
    steps: [
      "Run this in your project’s folder. Add `--scope user` to use the server in every project.\nclaude mcp add --transport http linkgate {url}",
      CLAUDE_CODE_SIGN_IN,
    ],
    ownClient: {
      redirectUri: "http://localhost:8976/callback",
      steps: [
        "Run this in a terminal. Claude Code asks for the client secret.\nclaude mcp add --transport http --client-id {client_id} --client-secret --callback-port 8976 linkgate {url}",
        CLAUDE_CODE_SIGN_IN,
      ],
    },
  },
  {
    id: "chatgpt",
    name: "ChatGPT",
    identity: "document",
    isHosted: true,
    steps: [
      "On the web, open Plugins, select + and then Add custom MCP server. In a workspace, an admin may have to allow this first.\n[Open Plugins](https://chatgpt.com/plugins)",
      "Enter the name linkgate and this server URL.\n{url}",
      "Select OAuth for authentication, and leave the client ID and secret empty.",
      "Confirm the warning, select Create as a plugin, and install the plugin.",
    ],
  },
  {
    id: "cursor",
    name: "Cursor",
    identity: "registration",
    steps: [
      "Install the server in Cursor and confirm.\n[Install in Cursor]({cursor_link})",
      "Or add it to `~/.cursor/mcp.json` yourself.\n{cursor_json}",
      CURSOR_CONNECT,
    ],
    ownClient: {
      redirectUri: "http://localhost:8787/callback",
      steps: [
        "Set the environment variable `LINKGATE_CLIENT_SECRET`, and add the server to `~/.cursor/mcp.json`.\n{cursor_client_json}",
        CURSOR_CONNECT,
      ],
    },
  },
  {
    id: "vscode",
    name: "VS Code",
    identity: "registration or document",
    steps: [
      "Install the server in VS Code and confirm.\n[Install in VS Code]({vscode_link})",
      "Or run this in a terminal.\ncode --add-mcp {vscode_json}",
      "Run `MCP: List Servers` from the Command Palette, select linkgate and start it.",
    ],
    ownClient: {
      redirectUri: "http://127.0.0.1:33418/",
      steps: [
        "Run this in a terminal.\ncode --add-mcp {vscode_json}",
        "Start the server with `MCP: List Servers`. When VS Code asks, enter the client secret and this client ID.\n{client_id}",
      ],
    },
  },
  {
    id: "codex",
    name: "Codex",
    identity: "document",
    steps: [
      "Run this in a terminal. The editor extension and the desktop app read the same configuration.\ncodex mcp add linkgate --url {url}",
      "If no browser window opens, sign in with this command.\ncodex mcp login linkgate",
    ],
  },
  {
    id: "copilot",
    name: "GitHub Copilot CLI",
    identity: "document",
    steps: [
      "Run this in a terminal.\ncopilot mcp add --transport http linkgate {url}",
      "Start Copilot CLI with `copilot`. If no browser window opens, enter this command.\n/mcp auth linkgate",
    ],
  },
  {
    id: "gemini",
    name: "Gemini CLI",
    identity: "registration",
    steps: [
      "Run this in a terminal.\ngemini mcp add --transport http --scope user linkgate {url}",
      GEMINI_SIGN_IN,
    ],
    ownClient: {
      redirectUri: "http://localhost:7777/oauth/callback",
      steps: [
        "Set the environment variable `LINKGATE_CLIENT_SECRET`, and add the server to `~/.gemini/settings.json`.\n{gemini_client_json}",
        GEMINI_SIGN_IN,
      ],
    },
  },
  {
    // It accepts no client ID of the user's.
    id: "zed",
    name: "Zed",
    identity: "document",
    steps: [
      "Run `zed: open settings file` from the command palette, and add this.\n{zed_json}",
      "Under Settings → AI → MCP Servers, authenticate linkgate.",
    ],
  },
  {
    id: "opencode",
    name: "OpenCode",
    identity: "document",
    steps: [
      "Run this in a terminal.\nopencode mcp add linkgate --url {url}",
      "Start OpenCode, enter `/mcps`, select linkgate and sign in.",
      "OpenCode 1 signs in with this command instead. It connects only if this server accepts registered apps.\nopencode mcp auth linkgate",
    ],
  },
  {
    id: "goose",
    name: "Goose",
    identity: "document",
    steps: [
      "Install the extension in Goose Desktop and confirm.\n[Install in Goose]({goose_link})",
      "Or, in a terminal, start a session with the extension. To keep it, add it with `goose configure` as a remote extension (Streamable HTTP).\ngoose session --with-streamable-http-extension {url}",
    ],
  },
  {
    id: "other",
    name: "Other clients",
    identity: "any",
    steps: [
      "Add a remote MCP server with this URL. The transport is Streamable HTTP.\n{url}",
      "Many clients read a JSON file such as this one. See the documentation of your client.\n{other_json}",
      "If the client asks for a client ID, leave it empty.",
    ],
  },
];
