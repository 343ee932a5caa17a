import { blocksOf } from "../examples.ts";
import type { TestOrganization } from "../service.ts";
import type { Script } from "../terminal.ts";

export type Setting = { mcp: string; issuer: string; model: string; organization: TestOrganization };

/**
 * A command that runs on a terminal until it exits, until the terminal shows something, or until the tool was called:
 * `asks` is typed again whenever the model had no tool yet.
 */
export type Step = { run: string; type?: Script; until?: RegExp; asks?: string };

/** A program or library that npm has, and how its user makes it call `whoami`. */
export type AiClient = {
  name: string;
  packages: Record<string, string>;
  /** It registers itself, so the server has to accept that. */
  registers?: true;
  /** It prints the URL that the user opens, instead of opening it. */
  prints?: true;
  /** Files in its home folder. */
  files?(setting: Setting): Record<string, string>;
  environment?(setting: Setting): Record<string, string>;
  steps(setting: Setting): (string | Step)[];
  /** Why it can't call a tool here, after it has signed in. */
  missing?: string;
};

const QUESTION = "Who am I?";
function guideOf(name: string, { mcp }: Setting): string[] {
  const blocks = blocksOf("docs/mcp.md").filter(
    ({ heading, language }) => heading === name && language === "sh",
  );
  const lines = blocks.flatMap(({ code }) => code.trim().split("\n"));
  if (lines.length === 0) throw new Error(`docs/mcp.md has no commands for ${name}`);
  return lines.map((line) => line.replaceAll("http://localhost:3000/mcp", mcp));
}

const json = (value: object) => JSON.stringify(value);
/** Runs a program of this repository, beside the packages that it imports. */
const program = (name: string) => `cp "$PROGRAMS"/*.mjs . && node ${name}.mjs`;

/** The clients that are run, with the versions that docs/mcp.md lists. */
export const AI_CLIENTS: AiClient[] = [
  {
    name: "Claude Code",
    packages: { "@anthropic-ai/claude-code": "2.1.332" },
    environment: ({ model }) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // Otherwise it may ask the model before it has the tools, or leave them out until the model searches for them.
      MCP_CONNECTION_NONBLOCKING: "false",
      ENABLE_TOOL_SEARCH: "false",
    }),
    steps: (setting) => [
      ...guideOf("Claude Code", setting),
      `claude -p "${QUESTION}" --allowedTools mcp__linkgate__whoami`,
    ],
  },
  {
    name: "Codex",
    packages: { "@openai/codex": "0.171.0" },
    files: ({ model }) => ({
      ".codex/config.toml": `
model = "stand-in"
model_provider = "stand-in"
check_for_update_on_startup = false
[model_providers.stand-in]
name = "stand-in"
base_url = "${model}/v1"
wire_api = "responses"
`,
    }),
    steps: (setting) => [
      // The second one is needed only if no browser window opened.
      ...guideOf("Codex", setting).slice(0, 1),
      `codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "${QUESTION}"`,
    ],
  },
  {
    name: "GitHub Copilot CLI",
    packages: { "@github/copilot": "1.0.102" },
    environment: ({ model }) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_ALLOW_ALL: "true",
      COPILOT_PROVIDER_BASE_URL: model,
      COPILOT_MODEL: "stand-in",
    }),
    steps: (setting) => [
      ...guideOf("GitHub Copilot CLI", setting).slice(0, 1),
      { run: `copilot -i "${QUESTION}"`, asks: QUESTION },
    ],
  },
  {
    name: "Gemini CLI",
    packages: { "@google/gemini-cli": "0.61.0" },
    registers: true,
    files: () => ({
      ".gemini/settings.json": json({
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
      }),
    }),
    environment: ({ model }) => ({
      GEMINI_API_KEY: "none",
      GOOGLE_GEMINI_BASE_URL: model,
      GEMINI_CLI_NO_RELAUNCH: "true",
    }),
    steps: (setting) => [
      ...guideOf("Gemini CLI", setting),
      {
        // Without its full-screen interface, it signs in as well, but then fails to show the result of the command.
        run: 'gemini -p "/mcp auth linkgate"',
        type: [["Do you want to continue", "\r"]],
        until: /not supported in non-interactive mode/,
      },
      `gemini --model gemini-2.5-flash --yolo -p "${QUESTION}"`,
    ],
  },
  {
    name: "OpenCode 1",
    packages: { "opencode-ai": "1.18.33" },
    registers: true,
    files: ({ model }) => ({
      ".config/opencode/opencode.json": json({
        autoupdate: false,
        share: "disabled",
        // By default, it starts without the tools of a server that takes more than 5 seconds.
        experimental: { mcp_timeout: 60_000 },
        model: "stand-in/stand-in",
        provider: {
          "stand-in": {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${model}/v1`, apiKey: "none" },
            models: { "stand-in": {} },
          },
        },
      }),
    }),
    environment: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "true", OPENCODE_DISABLE_MODELS_FETCH: "true" }),
    steps: (setting) => [
      ...guideOf("OpenCode", setting),
      "opencode mcp auth linkgate",
      `opencode run "${QUESTION}"`,
    ],
  },
  {
    name: "Amp",
    packages: { "@sourcegraph/amp": "0.0.1790142911-g7618fb" },
    registers: true,
    prints: true,
    environment: () => ({ AMP_API_KEY: "none", AMP_SKIP_UPDATE_CHECK: "1" }),
    steps: ({ mcp }) => [
      `amp mcp add linkgate ${mcp}`,
      // It may end after the sign-in, before it has the tools.
      { run: "amp mcp doctor; amp mcp doctor", until: /whoami|\d+ tools/ },
    ],
    missing: "a tool call needs an account with Amp",
  },
  {
    name: "mcporter",
    packages: { mcporter: "0.12.3" },
    registers: true,
    steps: ({ mcp }) => [
      `mcporter config add linkgate ${mcp}`,
      "mcporter auth linkgate",
      "mcporter call linkgate.whoami",
    ],
  },
  {
    name: "MCP Inspector",
    packages: { "@modelcontextprotocol/inspector": "2.12.0" },
    registers: true,
    prints: true,
    environment: () => ({ MCP_INSPECTOR_SECRET_STORE: "memory" }),
    steps: ({ mcp }) => [`mcp-inspector --cli --server-url ${mcp} --method tools/call --tool-name whoami`],
  },
  {
    name: "mcp-remote",
    packages: { "mcp-remote": "0.15.1", "@modelcontextprotocol/sdk": "1.32.2" },
    registers: true,
    prints: true,
    steps: ({ mcp }) => [`${program("mcp-remote")} ${mcp}`],
  },
  {
    name: "LangChain MCP adapters",
    packages: { "@langchain/mcp-adapters": "1.1.4" },
    registers: true,
    steps: ({ mcp }) => [`${program("langchain")} ${mcp}`],
  },
  {
    name: "AI SDK",
    packages: { "@ai-sdk/mcp": "2.0.99", ai: "7.0.173" },
    registers: true,
    steps: ({ mcp }) => [`${program("ai-sdk")} ${mcp}`],
  },
  {
    name: "Mastra",
    packages: { "@mastra/mcp": "2.0.0", "@mastra/core": "1.71.0" },
    environment: ({ issuer, organization }) => ({
      ISSUER: issuer,
      CLIENT_ID: organization.clientId,
      CLIENT_SECRET: organization.clientSecret,
    }),
    steps: ({ mcp }) => [`${program("mastra")} ${mcp}`],
  },
];
