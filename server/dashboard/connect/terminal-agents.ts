import { pretty } from "../../docs/prose.ts";
import { type Host, SERVER_NAME, type Step } from "./host.ts";
import { gooseLink } from "./install-links.ts";

const CALLBACK_PORT = 8976;
const CLAUDE_CODE_SIGN_IN: Step = {
  text: "Sign in with this command, or enter `/mcp` in Claude Code.",
  code: `claude mcp login ${SERVER_NAME}`,
};

/** Claude Code in a terminal, an editor or the desktop app. */
export const claudeCode: Host = {
  id: "claude-code",
  name: "Claude Code",
  identity: "document",
  steps: (mcpUrl) => [
    {
      text: "Run this in your project’s folder. Add `--scope user` to use the server in every project.",
      code: `claude mcp add --transport http ${SERVER_NAME} ${mcpUrl}`,
    },
    CLAUDE_CODE_SIGN_IN,
  ],
  ownClient: {
    redirectUri: `http://localhost:${CALLBACK_PORT}/callback`,
    steps: (mcpUrl, clientId) => [
      {
        text: "Run this in a terminal. Claude Code asks for the client secret.",
        code: `claude mcp add --transport http --client-id ${clientId} --client-secret --callback-port ${CALLBACK_PORT} ${SERVER_NAME} ${mcpUrl}`,
      },
      CLAUDE_CODE_SIGN_IN,
    ],
  },
};

/** Codex, whose command line, editor extension and desktop app share their configuration. */
export const codex: Host = {
  id: "codex",
  name: "Codex",
  identity: "document",
  steps: (mcpUrl) => [
    {
      text: "Run this in a terminal. The editor extension and the desktop app read the same configuration.",
      code: `codex mcp add ${SERVER_NAME} --url ${mcpUrl}`,
    },
    {
      text: "If no browser window opens, sign in with this command.",
      code: `codex mcp login ${SERVER_NAME}`,
    },
  ],
};

/** Gemini CLI, which registers itself and reads no metadata document. */
export const gemini: Host = {
  id: "gemini",
  name: "Gemini CLI",
  identity: "registration",
  steps: (mcpUrl) => [
    {
      text: "Run this in a terminal.",
      code: `gemini mcp add --transport http --scope user ${SERVER_NAME} ${mcpUrl}`,
    },
    { text: "Start Gemini CLI and enter this command.", code: `/mcp auth ${SERVER_NAME}` },
  ],
  ownClient: {
    redirectUri: "http://localhost:7777/oauth/callback",
    steps: (mcpUrl, clientId) => [
      {
        text: "Set the environment variable `LINKGATE_CLIENT_SECRET`, and add the server to `~/.gemini/settings.json`.",
        code: pretty({
          mcpServers: {
            [SERVER_NAME]: {
              httpUrl: mcpUrl,
              oauth: { enabled: true, clientId, clientSecret: "$LINKGATE_CLIENT_SECRET" },
            },
          },
        }),
      },
      { text: "Start Gemini CLI and enter this command.", code: `/mcp auth ${SERVER_NAME}` },
    ],
  },
};

/** OpenCode, whose first major version has no metadata document and registers itself. */
export const opencode: Host = {
  id: "opencode",
  name: "OpenCode",
  identity: "document",
  steps: (mcpUrl) => [
    { text: "Run this in a terminal.", code: `opencode mcp add ${SERVER_NAME} --url ${mcpUrl}` },
    { text: `Start OpenCode, enter \`/mcps\`, select ${SERVER_NAME} and sign in.` },
    {
      text: "OpenCode 1 signs in with this command instead. It connects only if this server accepts registered apps.",
      code: `opencode mcp auth ${SERVER_NAME}`,
    },
  ],
};

/** Goose, the desktop app and the command line. */
export const goose: Host = {
  id: "goose",
  name: "Goose",
  identity: "document",
  steps: (mcpUrl) => [
    {
      text: "Install the extension in Goose Desktop and confirm.",
      link: { text: "Install in Goose", href: gooseLink(mcpUrl) },
    },
    {
      text: "Or, in a terminal, start a session with the extension. To keep it, add it with `goose configure` as a remote extension (Streamable HTTP).",
      code: `goose session --with-streamable-http-extension ${mcpUrl}`,
    },
  ],
};
