import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { ALL_ERAS, connectUntilEnd } from "../../harness/clients/mcp.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";

// Without the tables of links and their numbers, statements fail with errors that name tables and columns.
const { service, knex } = await startServiceWithDatabase();
const token = await service.token(await service.createOrganization());
const api = apiAt(service.url, token);
const { id, slug } = await api.createLink();
await knex.schema.renameTable("links", "links_elsewhere");
await knex.schema.renameTable("organization_usage", "organization_usage_elsewhere");

const LEAKS =
  /sql|select|insert|update|from|links_|no such table|relation|\btable\b|column|\.ts|node_modules|at \w+ \(|stack|knex/i;
// For texts that may have words of SQL.
const NAMES = /sql|knex|no such|links_|\.ts\b/i;

const calls: [method: string, path: string, json?: object][] = [
  ["GET", "/v1/links"],
  ["GET", "/v1/links?search=x"],
  ["POST", "/v1/links", { url: "https://example.com" }],
  ["GET", `/v1/links/${id}`],
  ["PATCH", `/v1/links/${id}`, { title: "x" }],
  ["DELETE", `/v1/links/${id}`],
  ["GET", "/v1/organization"],
  ["GET", `/${slug}`],
];
test("a failure of an operation is a 500, as JSON and as a page, that reveals only a request id", async (t) => {
  for (const [method, path, json] of calls) {
    const reply = await api.send(method, path, { json });
    isProblem(t, reply, { status: 500, code: "internal_error" });
    t.notRegex(reply.text.replaceAll(service.url, ""), LEAKS);
    for (const [name, value] of reply.headers) t.notRegex(`${name}: ${value}`, NAMES);
  }
  const { status, headers, text } = await api.get(`/${slug}`, { accept: "text/html" });
  t.deepEqual([status, headers.get("content-type")], [500, "text/html; charset=utf-8"]);
  t.notRegex(text, NAMES);
});

const tools: [name: string, args: Record<string, unknown>][] = [
  ["whoami", {}],
  ["create_link", { url: "https://example.com" }],
  ["get_link", { id }],
  ["list_links", {}],
  ["update_link", { id, title: "x" }],
  ["delete_link", { id }],
];
for (const era of ALL_ERAS)
  test(`${era}: a failure of a tool is reported to the agent without the reason`, async (t) => {
    const client = await connectUntilEnd(t, `${service.url}/mcp`, token, era);
    for (const [name, args] of tools) {
      const { isError, content } = await client.callTool({ name, arguments: args });
      const text = JSON.stringify(content);
      t.true(isError, text);
      t.notRegex(text, /sql|select|insert into|links_|no such table|\.ts|knex|column/i);
      t.regex(text, /internal_error/);
      t.regex(text, /request_id/);
    }
  });
