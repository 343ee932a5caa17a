import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { type ConnectBody, type StepBody, startPublicService } from "../../../harness/clients/connect.ts";

const run = promisify(execFile);
const MCP_URL = "https://mcp.example.com/tools/mcp";
const { service, connectPageOf } = await startPublicService({
  CIMD: "any",
  DYNAMIC_REGISTRATION: "stateless",
  MCP_URL,
});
const { id: organizationId } = await service.createOrganization();
await service.storage.organizationSettings.change(organizationId, { allowedClients: "any" }, OPERATOR);
const body: ConnectBody = await connectPageOf(organizationId);
test.after.always(() => service.close());

function stepsOf(id: string): StepBody[] {
  return body.hosts.find((host) => host.id === id)?.steps ?? [];
}

/** Returns the first code of a host that matches a pattern. */
function codeOf(id: string, pattern = /./): string {
  return stepsOf(id).find(({ code }) => code && pattern.test(code))?.code ?? "";
}

function linkOf(id: string): URL {
  return new URL(stepsOf(id).find(({ link }) => link)?.link?.href ?? "");
}

test("every host has something to paste or open, which names the MCP server’s URL", (t) => {
  t.is(body.mcp_url, MCP_URL);
  t.deepEqual(
    body.hosts.map(({ id }) => id),
    [
      ...["claude", "claude-code", "chatgpt", "cursor", "vscode", "codex"],
      ...["copilot", "gemini", "zed", "opencode", "goose", "other"],
    ],
  );
  for (const { name, available, steps } of body.hosts) {
    t.true(available, name);
    const pasted = steps.flatMap(({ code = "", link }) => [code, link?.href ?? ""]).join("\n");
    t.true(pasted.includes(MCP_URL), name);
    t.false(pasted.includes(service.url), name);
  }
});

for (const id of ["claude", "chatgpt", "other"]) {
  test(`the URL for ${id} can be pasted as it is`, (t) => {
    t.is(codeOf(id, /^https:/), MCP_URL);
  });
}

const COMMANDS: [host: string, command: string][] = [
  ["claude-code", `claude mcp add --transport http linkgate ${MCP_URL}`],
  ["codex", `codex mcp add linkgate --url ${MCP_URL}`],
  ["copilot", `copilot mcp add --transport http linkgate ${MCP_URL}`],
  ["gemini", `gemini mcp add --transport http --scope user linkgate ${MCP_URL}`],
  ["opencode", `opencode mcp add linkgate --url ${MCP_URL}`],
  ["goose", `goose session --with-streamable-http-extension ${MCP_URL}`],
];

for (const [host, command] of COMMANDS) {
  test(`the command for ${host} adds the MCP server`, (t) => {
    t.is(codeOf(host), command);
  });
}

test("a shell passes VS Code’s command line one argument with the server’s configuration", async (t) => {
  const command = codeOf("vscode", /^code /).replace(/^code /, "printf '%s\\n' ");
  const [option, json = ""] = (await run("sh", ["-c", command])).stdout.trim().split("\n");
  t.is(option, "--add-mcp");
  t.deepEqual(JSON.parse(json), { name: "linkgate", type: "http", url: MCP_URL });
});

test("the link to VS Code contains the server’s configuration", (t) => {
  const { protocol, pathname, search } = linkOf("vscode");
  t.is(protocol + pathname, "vscode:mcp/install");
  t.deepEqual(JSON.parse(decodeURIComponent(search.slice(1))), {
    name: "linkgate",
    type: "http",
    url: MCP_URL,
  });
});

test("the link to Cursor contains the server’s configuration", (t) => {
  const { protocol, host, pathname, searchParams } = linkOf("cursor");
  t.is(`${protocol}//${host}${pathname}`, "cursor://anysphere.cursor-deeplink/mcp/install");
  t.is(searchParams.get("name"), "linkgate");
  const config = Buffer.from(searchParams.get("config") ?? "", "base64").toString();
  t.deepEqual(JSON.parse(config), { url: MCP_URL });
});

test("the link to Goose contains the extension", (t) => {
  const { protocol, host, searchParams } = linkOf("goose");
  t.is(`${protocol}//${host}`, "goose://extension");
  t.deepEqual(Object.fromEntries(searchParams), {
    url: MCP_URL,
    type: "streamable_http",
    id: "linkgate",
    name: "linkgate",
    description: "Short links and their clicks",
  });
});

test("the configuration of Cursor, Zed and other clients is JSON with the server’s URL", (t) => {
  t.deepEqual(JSON.parse(codeOf("cursor")), { mcpServers: { linkgate: { url: MCP_URL } } });
  t.deepEqual(JSON.parse(codeOf("zed")), { context_servers: { linkgate: { url: MCP_URL } } });
  t.deepEqual(JSON.parse(codeOf("other", /^\{/)), {
    mcpServers: { linkgate: { type: "http", url: MCP_URL } },
  });
});
