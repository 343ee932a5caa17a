import { randomBytes } from "node:crypto";
import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { ALL_ERAS, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { bearer, startTestService } from "../../harness/service.ts";

// Without the tables of links and their numbers, statements fail with errors that name tables and columns.
const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const { id, slug } = await api.createLink();
const knex = knexFactory(knexConfig(database.url));
await knex.schema.renameTable("links", "links_elsewhere");
await knex.schema.renameTable("organization_usage", "organization_usage_elsewhere");
test.after.always(async () => {
  await knex.destroy();
  await service.close();
  await database.drop();
});

const LEAKS =
  /sql|select|insert|update|from|links_|no such table|relation|\btable\b|column|\.ts|node_modules|at \w+ \(|stack|knex/i;

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
for (const [method, path, json] of calls) {
  test(`a failure of ${method} ${path.replace(id, "{id}").replace(slug, "{slug}")} is a 500 that reveals only a request id`, async (t) => {
    const reply = await api.send(method, path, { json });
    isProblem(t, reply, { status: 500, code: "internal_error" });
    t.notRegex(reply.text.replaceAll(service.url, ""), LEAKS);
    for (const [name, value] of reply.headers) t.notRegex(`${name}: ${value}`, /sqlite|knex|no such|\.ts:/i);
  });
}

test("a browser that follows a link gets an error page without the reason", async (t) => {
  const reply = await api.get(`/${slug}`, { accept: "text/html" });
  t.is(reply.status, 500);
  t.regex(reply.headers.get("content-type") ?? "", /^text\/html/);
  t.notRegex(reply.text, /sql|links_|no such table|\.ts|knex/i);
});

const tools: [name: string, args: object][] = [
  ["whoami", {}],
  ["create_link", { url: "https://example.com" }],
  ["get_link", { id }],
  ["list_links", {}],
  ["update_link", { id, title: "x" }],
  ["delete_link", { id }],
];
for (const era of ALL_ERAS) {
  for (const [name, args] of tools) {
    test(`${era}: a failure of ${name} is reported to the agent without the reason`, async (t) => {
      const params = { name, arguments: args };
      const { message, headers } =
        era === "2026-07-28"
          ? modernRequest("tools/call", params)
          : { message: { jsonrpc: "2.0", id: 1, method: "tools/call", params }, headers: {} };
      const { rpc, text } = await postMcp(`${service.url}/mcp`, message, { ...headers, ...bearer(token) });
      t.true(rpc?.error !== undefined || rpc?.result?.isError === true, text);
      t.notRegex(text, /sql|select|insert into|links_|no such table|\.ts|knex|column/i);
      t.regex(text, /internal_error/);
      t.regex(text, /request_id/);
    });
  }
}
