import test from "ava";
import { type Api, apiAt, isProblem, type LinkBody, type Reply } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService, type TestOrganization, type TestUser } from "../../harness/service.ts";
import type { NewWebhookBody } from "../../harness/webhooks.ts";

export const databases = "all";

const service = await startTestService();

// The organization that all tokens act for, and the apps of two other organizations.
const own = await service.createOrganization();
const [app, otherApp] = [await service.createOrganization(), await service.createOrganization()];
const ada = await createColleague(service, own.id, "owner");
const bob = await createColleague(service, own.id, "owner");

async function actingFor(client: TestOrganization, user: TestUser, scope: string): Promise<string> {
  const options = { organizationId: own.id, parameters: { scope } };
  return (await tokensFor(service, client, user, options)).access_token;
}

const ALL = "links:write webhooks:write";
const mine = apiAt(service.url, await actingFor(app, ada, ALL));
// A client without a user, another app for the same user, and the same app for another user.
const others = [
  await service.token(own),
  await actingFor(otherApp, ada, ALL),
  await actingFor(app, bob, ALL),
].map((token) => apiAt(service.url, token));

let count = 0;
const newKey = () => `key-${++count}`;
const url = "https://example.com/";
const post = <Body = LinkBody>(api: Api, path: string, key: string, json?: unknown) =>
  api.send<Body>("POST", path, { ...(json !== undefined && { json }), headers: { "idempotency-key": key } });
const isReplayed = ({ headers }: Reply<unknown>) => headers.get("idempotency-replayed") === "true";

const WEBHOOK = { url: "https://example.com/hook", events: ["link.deleted"] };

test.serial("a key never reveals the webhook secret of another principal", async (t) => {
  const creation = newKey();
  const shared = await post<NewWebhookBody>(mine, "/v1/webhooks", creation, WEBHOOK);
  for (const api of others) {
    const reply = await post(api, "/v1/webhooks", creation, WEBHOOK);
    t.false(isReplayed(reply));
    t.false(reply.text.includes("whsec_"));
  }
  const key = newKey();
  const rotate = (api: Api) => post<NewWebhookBody>(api, `/v1/webhooks/${shared.body.id}/rotate-secret`, key);
  const secrets = new Map<Api, string>();
  for (const api of [mine, ...others]) {
    const reply = await rotate(api);
    t.true(reply.status < 300, reply.text);
    t.false(isReplayed(reply));
    secrets.set(api, reply.body.secret);
  }
  t.is(new Set(secrets.values()).size, 4);
  for (const [api, secret] of secrets) {
    const again = await rotate(api);
    isProblem(t, again, { status: 409, code: "secret_shown_once" });
    t.true(isReplayed(again));
    t.false(again.text.includes(secret));
  }
});

test("a new grant for the same client and user shares its keys", async (t) => {
  const key = newKey();
  const first = await post(mine, "/v1/links", key, { url });
  const again = await post(apiAt(service.url, await actingFor(app, ada, ALL)), "/v1/links", key, { url });
  t.true(isReplayed(again));
  t.is(again.text, first.text);
});

test("a replay requires the scopes of its operation, over REST and MCP", async (t) => {
  const key = newKey();
  const webhook = { ...WEBHOOK, url: "https://example.com/scopes" };
  t.is((await post(mine, "/v1/webhooks", key, webhook)).status, 201);
  const token = await actingFor(app, ada, "links:write webhooks:read");
  const rejected = await post(apiAt(service.url, token), "/v1/webhooks", key, webhook);
  isProblem(t, rejected, { status: 403, code: "insufficient_scope" });
  t.false(isReplayed(rejected));
  t.false(rejected.text.includes("whsec_"));

  const args = { ...webhook, idempotency_key: key };
  const { message, headers } = modernRequest("tools/call", { name: "create_webhook", arguments: args });
  const byTool = await postMcp(service.urls.mcp, message, { ...headers, ...bearer(token) });
  t.is(byTool.status, 403);
  t.false(byTool.text.includes("whsec_"));
});
