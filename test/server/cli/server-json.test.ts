import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import test from "ava";
import manifest from "../../../package.json" with { type: "json" };
import { runCommand, stopPrograms } from "../../harness/program.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-server-json-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

/** The rules of the registry's schema of 2025-12-11 for the fields of a remote server. Others would be typos. */
const RULES = {
  type: "object",
  required: ["$schema", "name", "description", "version", "remotes"],
  additionalProperties: false,
  properties: {
    $schema: { const: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json" },
    name: { type: "string", pattern: "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", minLength: 3, maxLength: 200 },
    title: { type: "string", minLength: 1, maxLength: 100 },
    description: { type: "string", minLength: 1, maxLength: 100 },
    version: { type: "string", maxLength: 255, pattern: "^[0-9]+\\.[0-9]+\\.[0-9]+$" },
    websiteUrl: { type: "string", format: "uri" },
    remotes: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["type", "url"],
        additionalProperties: false,
        properties: {
          type: { enum: ["streamable-http", "sse"] },
          url: { type: "string", format: "uri", pattern: "^https?://[^\\s]+$" },
        },
      },
    },
  },
};
const ajv = formats.default(new Ajv({ allErrors: true }));

const ADDRESSES: [settings: Record<string, string>, name: string, url: string][] = [
  [{ BASE_URL: "https://example.com" }, "com.example/linkgate", "https://example.com/mcp"],
  [{ BASE_URL: "https://go.example.com" }, "com.example.go/linkgate", "https://go.example.com/mcp"],
  [
    { BASE_URL: "https://links.example.com:8443" },
    "com.example.links/linkgate",
    "https://links.example.com:8443/mcp",
  ],
  [
    { BASE_URL: "https://example.com", MCP_URL: "https://mcp.example.com/agents" },
    "com.example/linkgate",
    "https://mcp.example.com/agents",
  ],
];

for (const [addresses, name, url] of ADDRESSES) {
  test(`${Object.values(addresses).join(" and ")} is listed as ${name} at ${url}`, async (t) => {
    const { code, stdout, stderr } = await runCommand(["mcp", "server-json"], {
      settings: { ...settings, ...addresses },
    });
    t.is(code, 0, stderr);
    const entry = JSON.parse(stdout);
    t.true(ajv.validate(RULES, entry), ajv.errorsText());
    t.like(entry, { name, version: manifest.version, websiteUrl: addresses.BASE_URL });
    t.deepEqual(entry.remotes, [{ type: "streamable-http", url }]);
  });
}

test("--json prints the same document", async (t) => {
  const options = { settings: { ...settings, BASE_URL: "https://example.com" } };
  const [plain, json] = await Promise.all([
    runCommand(["mcp", "server-json"], options),
    runCommand(["mcp", "server-json", "--json"], options),
  ]);
  t.deepEqual(JSON.parse(json.stdout), JSON.parse(plain.stdout));
  t.is(json.stdout.trim().split("\n").length, 1);
});

for (const base of [
  undefined,
  "http://localhost:3000",
  "http://127.0.0.1:3000",
  "https://192.0.2.1",
  "https://[2001:db8::1]",
  "https://intranet",
]) {
  test(`${base ?? "an unset BASE_URL"} can't be listed`, async (t) => {
    const { code, stdout, stderr } = await runCommand(["mcp", "server-json", "--json"], {
      settings: { ...settings, ...(base && { BASE_URL: base }) },
    });
    t.is(code, 1);
    t.is(stdout, "");
    const { error } = JSON.parse(stderr);
    t.is(error.code, "not_public");
    t.regex(error.message, /Set BASE_URL/);
  });
}
