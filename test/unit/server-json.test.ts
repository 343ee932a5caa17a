import test from "ava";
import { z } from "zod";
import manifest from "../../package.json" with { type: "json" };
import { serverJson } from "../../server/cli/commands/server-json.ts";
import { readSettings } from "../../server/settings/config.ts";
import { publicUrlsOf } from "../../server/settings/public-urls.ts";

const HTTP_URL = z.url({ protocol: /^https?$/ });
/** The rules of the registry's schema of 2025-12-11 for the fields of a remote server. Others would be typos. */
const RULES = z.strictObject({
  $schema: z.literal("https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"),
  name: z
    .string()
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
    .min(3)
    .max(200),
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(100),
  version: z
    .string()
    .max(255)
    .regex(/^[0-9]+\.[0-9]+\.[0-9]+$/),
  websiteUrl: z.url().optional(),
  remotes: z.array(z.strictObject({ type: z.enum(["streamable-http", "sse"]), url: HTTP_URL })).min(1),
});
const urlsOf = (variables: Record<string, string>) => publicUrlsOf(readSettings(variables), 3000);

const OTHER = "https://mcp.example.com/agents";
const ADDRESSES: [settings: Record<string, string>, name: string, url: string][] = [
  [{ BASE_URL: "https://example.com" }, "com.example/linkgate", "https://example.com/mcp"],
  [{ BASE_URL: "https://go.example.com" }, "com.example.go/linkgate", "https://go.example.com/mcp"],
  [{ BASE_URL: "https://a.example.com:8443" }, "com.example.a/linkgate", "https://a.example.com:8443/mcp"],
  [{ BASE_URL: "https://example.com", MCP_URL: OTHER }, "com.example/linkgate", OTHER],
];

test("the document names a public server by its domain, and follows the schema of the registry", (t) => {
  for (const [addresses, name, url] of ADDRESSES) {
    const entry = serverJson(urlsOf(addresses));
    t.is(RULES.safeParse(entry).error, undefined);
    t.like(entry, { name, version: manifest.version, websiteUrl: addresses.BASE_URL });
    t.deepEqual(entry.remotes, [{ type: "streamable-http", url }]);
  }
});

test("a server that isn't public can't be listed", (t) => {
  for (const BASE_URL of [
    ...["", "http://localhost:3000", "http://127.0.0.1:3000", "https://192.0.2.1"],
    ...["https://[2001:db8::1]", "https://intranet"],
  ])
    t.throws(() => serverJson(urlsOf({ BASE_URL })), { code: "not_public", message: /Set BASE_URL/ });
});
