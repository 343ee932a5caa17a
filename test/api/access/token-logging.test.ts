import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { openStorage } from "../../../adapters/index.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { MCP_HEADERS } from "../../harness/clients/mcp.ts";
import { PRODUCTION } from "../../harness/production.ts";
import { addressOf, startServer, temporaryFolder } from "../../harness/program.ts";
import { bearer, OPERATOR, postForm } from "../../harness/service.ts";

// A production server with the most verbose logging.
const folder = temporaryFolder("logging");
const settings = {
  PORT: "0",
  ...PRODUCTION,
  LOG_LEVEL: "trace",
  DATABASE_URL: `sqlite:${folder}/logging.sqlite`,
  ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64url"),
};
const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
await storage.migrate();
const { client } = await storage.organizations.create("Logged", "growth", OPERATOR);
await storage.close();
if (!client) throw new Error("no client was created");
const server = startServer({ settings, cwd: folder });
const url = await addressOf(server);
const knex = knexFactory(knexConfig(settings.DATABASE_URL));
test.after.always(async () => {
  await knex.destroy();
  await server.stop();
});

test("no token or webhook secret is logged, regardless of how the request ends", async (t) => {
  const fields = { client_id: client.clientId, client_secret: client.clientSecret };
  const answer = await postForm(`${url}/oauth/token`, { ...fields, grant_type: "client_credentials" });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const api = apiAt(url, token);
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };

  const slugs = [(await api.createLink()).slug, (await api.createLink()).slug];
  const webhook = { url: "https://hooks.example.com/in", events: ["link.created"] };
  const made = await api.send<{ secret: string }>("POST", "/v1/webhooks", { json: webhook });
  const tool = { ...call, params: { name: "create_webhook", arguments: webhook } };
  t.is((await api.send("POST", "/mcp", { json: tool, headers: MCP_HEADERS })).status, 200);
  const send = async () => [
    (await api.get("/v1/links")).status,
    (await api.get(`/v1/links?access_token=${token}`)).status,
    (await apiAt(url).get(`/v1/links?access_token=${token}`)).status,
    (await apiAt(url, `${token} ${token}`).get("/v1/links")).status,
    (await apiAt(url, `${token}x`).get("/v1/links")).status,
    (await api.send("POST", "/v1/links", { json: { url: "https://example.com", token } })).status,
    (await api.send("POST", "/mcp", { json: call, headers: MCP_HEADERS })).status,
    // A redirect that the server has not cached.
    (await api.get(`/${slugs.pop()}`, bearer(token))).status,
  ];
  t.deepEqual(await send(), [200, 400, 401, 400, 401, 422, 200, 302]);
  await knex.schema.renameTable("links", "links_elsewhere");
  t.deepEqual(await send(), [500, 400, 401, 400, 401, 422, 200, 500]);
  const { body } = await api.send("GET", "/v1/links");
  await knex.schema.renameTable("tokens", "tokens_elsewhere");
  t.is((await api.get("/v1/links")).status, 500);

  await server.says(new RegExp(body.request_id));
  const { stdout, stderr } = await server.stop();
  const secret = token.slice("lga_".length);
  const parts = [secret.slice(0, 12), secret.slice(-12), client.clientSecret, made.body.secret, "whsec_"];
  for (const part of parts) t.false((stdout + stderr).includes(part));
});
