import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  type Api,
  apiAt,
  isProblem,
  type LinkBody,
  type PageBody,
  type Reply,
} from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { connectMcp, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService, type TestOrganization, type TestUser } from "../../harness/service.ts";
import type { NewWebhookBody } from "../../harness/webhooks.ts";

export const databases = "all";

const service = await startTestService();

// The organization that all tokens act for, and the apps of two other organizations.
const own = await service.createOrganization();
const [app, otherApp] = [await service.createOrganization(), await service.createOrganization()];
const ada = await createColleague(service, own.id, "owner");
const bob = await createColleague(service, own.id, "owner");

/** Returns a token of a client that acts for a user in the organization. */
async function actingFor(client: TestOrganization, user: TestUser, scope: string): Promise<string> {
  const options = { organizationId: own.id, parameters: { scope } };
  return (await tokensFor(service, client, user, options)).access_token;
}

const ALL = "links:write webhooks:write";
const TOKENS: Record<string, string> = {
  "a client without a user": await service.token(own),
  "an app for a user": await actingFor(app, ada, ALL),
  "another app for the same user": await actingFor(otherApp, ada, ALL),
  "the same app for another user": await actingFor(app, bob, ALL),
};
test.after.always(() => service.close());

const NAMES = Object.keys(TOKENS);
const apis = NAMES.map((name) => apiAt(service.url, TOKENS[name]));
const [, mine, theirs] = apis as [Api, Api, Api];
const pairs: [string, string][] = NAMES.flatMap((one) =>
  NAMES.filter((name) => name !== one).map((other): [string, string] => [one, other]),
);

let count = 0;
const newKey = () => `key-${++count}`;
const url = "https://example.com/";
const post = <Body = LinkBody>(api: Api, path: string, key: string, json?: unknown) =>
  api.send<Body>("POST", path, {
    ...(json !== undefined && { json }),
    headers: { "idempotency-key": key },
  });
const isReplayed = ({ headers }: Reply<unknown>) => headers.get("idempotency-replayed") === "true";

const WEBHOOK = { url: "https://example.com/hook", events: ["link.deleted"] };

test.serial("a key never reveals the webhook secret of another principal", async (t) => {
  const creation = newKey();
  const shared = await post<NewWebhookBody>(mine, "/v1/webhooks", creation, WEBHOOK);
  for (const api of apis.filter((one) => one !== mine)) {
    const reply = await post(api, "/v1/webhooks", creation, WEBHOOK);
    t.false(isReplayed(reply));
    t.false(reply.text.includes("whsec_"));
  }
  const requests: [path: string, json?: object][] = [[`/v1/webhooks/${shared.body.id}/rotate-secret`]];
  for (const [path, json] of requests) {
    const key = newKey();
    const send = (api: Api) => post<NewWebhookBody>(api, path, key, json);
    const secrets = new Map<Api, string>();
    for (const api of apis) {
      const reply = await send(api);
      t.true(reply.status < 300, reply.text);
      t.false(isReplayed(reply));
      secrets.set(api, reply.body.secret);
    }
    t.is(new Set(secrets.values()).size, apis.length);
    for (const [api, secret] of secrets) {
      const again = await send(api);
      isProblem(t, again, { status: 409, code: "secret_shown_once" });
      t.true(isReplayed(again));
      t.false(again.text.includes(secret));
    }
  }
});

test.serial(
  "a response is replayed only to its own principal, even after its webhook was changed or deleted",
  async (t) => {
    const key = newKey();
    const json = { ...WEBHOOK, url: "https://example.com/kept" };
    const created = await post<NewWebhookBody>(mine, "/v1/webhooks", key, json);
    const path = `/v1/webhooks/${created.body.id}`;
    for (const change of [
      () => mine.send("POST", `${path}/rotate-secret`),
      () => mine.send("DELETE", path),
    ]) {
      t.true((await change()).status < 300);
      const again = await post(mine, "/v1/webhooks", key, json);
      isProblem(t, again, { status: 409, code: "secret_shown_once" });
      t.true(isReplayed(again));
    }
    const other = await post<NewWebhookBody>(theirs, "/v1/webhooks", key, json);
    t.is(other.status, 201);
    t.false(isReplayed(other));
    t.not(other.body.id, created.body.id);
    t.not(other.body.secret, created.body.secret);
  },
);

for (const [one, other] of pairs) {
  test(`a key of ${one} is a new key for ${other}`, async (t) => {
    const [first, second] = [apiAt(service.url, TOKENS[one]), apiAt(service.url, TOKENS[other])];
    const key = newKey();
    const created = await post(first, "/v1/links", key, { url });
    const same = await post(second, "/v1/links", key, { url });
    t.is(same.status, 201);
    t.false(isReplayed(same));
    t.not(same.body.id, created.body.id);

    const otherKey = newKey();
    await post(first, "/v1/links", otherKey, { url });
    const another = await post(second, "/v1/links", otherKey, { url, title: "another" });
    t.is(another.status, 201, "not a 422 of a reused key either");
    t.false(isReplayed(another));
  });
}

test("concurrent requests with one key are performed once per principal", async (t) => {
  const [key, tag] = [newKey(), "concurrent"];
  const replies = await atOnce(40, (index) =>
    post(apis[index % apis.length] as Api, "/v1/links", key, { url, tags: [tag] }),
  );
  for (const [index] of apis.entries()) {
    const its = replies.filter((_, place) => place % apis.length === index);
    const created = its.filter(({ status }) => status === 201);
    t.is(created.filter((reply) => !isReplayed(reply)).length, 1);
    t.is(new Set(created.map(({ body }) => body.id)).size, 1);
    for (const { status } of its) t.true(status === 201 || status === 409);
  }
  const { body } = await mine.get<PageBody>(`/v1/links?limit=100&tag=${tag}`);
  t.is(body.data.length, apis.length);
});

test("a tool replays a response of REST only to the same principal", async (t) => {
  const key = newKey();
  const args = { url, title: "shared" };
  const { body } = await post(mine, "/v1/links", key, args);
  const seen = new Map<string, unknown>();
  for (const name of NAMES) {
    const agent = await connectMcp(`${service.url}/mcp`, String(TOKENS[name]));
    t.teardown(() => agent.close());
    const call = () => agent.callTool({ name: "create_link", arguments: { ...args, idempotency_key: key } });
    const result = await call();
    t.falsy(result.isError);
    const { id } = result.structuredContent as LinkBody;
    const isOwn = name === "an app for a user";
    t.is(id === body.id, isOwn, name);
    t.is(result._meta?.idempotency_replayed, isOwn || undefined, name);
    t.like(await call(), { structuredContent: { id }, _meta: { idempotency_replayed: true } });
    seen.set(name, id);
  }
  t.is(new Set(seen.values()).size, NAMES.length);
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

  const { message, headers } = modernRequest("tools/call", {
    name: "create_webhook",
    arguments: { ...webhook, idempotency_key: key },
  });
  const byTool = await postMcp(`${service.url}/mcp`, message, {
    ...headers,
    authorization: `Bearer ${token}`,
  });
  t.is(byTool.status, 403);
  t.false(byTool.text.includes("whsec_"));
});

test("the same client and user share no keys between organizations", async (t) => {
  const elsewhere = await service.createOrganization();
  await service.storage.organizations.addMember(elsewhere.id, ada.id, "owner", OPERATOR);
  const key = newKey();
  await post(mine, "/v1/links", key, { url });
  const { access_token } = await tokensFor(service, app, ada, { organizationId: elsewhere.id });
  const there = await post(apiAt(service.url, access_token), "/v1/links", key, { url });
  t.is(there.status, 201);
  t.false(isReplayed(there));
});
