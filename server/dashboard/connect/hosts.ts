import { pretty } from "../../docs/prose.ts";
import { chatgpt, claude } from "./assistants.ts";
import { cursor, vscode, zed } from "./editors.ts";
import { type Host, SERVER_NAME } from "./host.ts";
import { claudeCode, codex, gemini, goose, opencode } from "./terminal-agents.ts";

const other: Host = {
  id: "other",
  name: "Other clients",
  identity: "any",
  steps: (mcpUrl) => [
    { text: "Add a remote MCP server with this URL. The transport is Streamable HTTP.", code: mcpUrl },
    {
      text: "Many clients read a JSON file such as this one. See the documentation of your client.",
      code: pretty({ mcpServers: { [SERVER_NAME]: { type: "http", url: mcpUrl } } }),
    },
    { text: "If the client asks for a client ID, leave it empty." },
  ],
};

/** The AI clients that the page explains, in the order of its tabs. */
export const HOSTS: readonly Host[] = [
  claude,
  claudeCode,
  chatgpt,
  cursor,
  vscode,
  codex,
  gemini,
  zed,
  opencode,
  goose,
  other,
];
