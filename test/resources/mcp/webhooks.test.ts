import { randomUUID } from "node:crypto";
import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import {
  ALL_ERAS,
  callTool,
  connectMcp,
  type Era,
  MCP_HEADERS,
  modernRequest,
  postMcp,
  refusalOf,
} from "../../harness/clients/mcp.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { bearer, startTestService } from "../../harness/service.ts";
import {
  allDeliveriesOf,
  createWebhook,
  type DeliveryBody,
  type DeliveryPage,
  type NewWebhookBody,
  type WebhookBody,
  type WebhookPage,
  waitForDelivery,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });

test.after.always(() => Promise.all([service.close(), receiver.close()]));

const url = `${service.url}/mcp`;

async function newOrganization() {
  const { id, ...client } = await service.createOrganization();
  const token = await service.token(client);
  return { id, token, api: apiAt(service.url, token) };
}

/** What an agent sees of a webhook that it created. */
type AgentWebhook = WebhookBody & { secret_url: string };

for (const era of ALL_ERAS) {
  test(`${era}: an agent creates, reads, lists, updates and deletes a webhook as over REST`, async (t) => {
    const { id, token, api } = await newOrganization();
    const agent = await connectMcp(url, token, era);
    const fields = { url: "https://example.com/hook", events: ["link.created", "link.deleted"] };
    const { secret_url, ...created } = await callTool<AgentWebhook>(t, agent, "create_webhook", fields);
    t.like(created, { ...fields, enabled: true });
    t.is(secret_url, `${service.url}/dashboard/organizations/${id}/webhooks/${created.id}`);
    t.deepEqual((await api.get<WebhookBody>(`/v1/webhooks/${created.id}`)).body, created);
    t.deepEqual(await callTool<WebhookBody>(t, agent, "get_webhook", { id: created.id }), created);
    t.deepEqual(await callTool<WebhookPage>(t, agent, "list_webhooks", { limit: 1 }), {
      data: [created],
      next_cursor: null,
    });
    const changes = { events: ["link.clicked"], enabled: false };
    const changed = await callTool<WebhookBody>(t, agent, "update_webhook", { id: created.id, ...changes });
    t.like(changed, { ...changes, url: fields.url });
    t.deepEqual((await api.get<WebhookBody>(`/v1/webhooks/${created.id}`)).body, changed);
    const deletion = await callTool<object>(t, agent, "delete_webhook", { id: created.id });
    t.deepEqual(deletion, { deleted: true, id: created.id });
    isMissing(t, await api.get(`/v1/webhooks/${created.id}`));
    await agent.close();
  });

  test(`${era}: an agent tests a webhook, rotates its secret, lists its deliveries and resends one`, async (t) => {
    const { token, api } = await newOrganization();
    const agent = await connectMcp(url, token, era);
    const path = `/agent-${era}`;
    const { secret, ...webhook } = await createWebhook(api, receiver.url(path));
    const { id } = webhook;
    const renewed = await callTool<AgentWebhook>(t, agent, "rotate_webhook_secret", { id });
    t.like(renewed, { id, url: webhook.url });
    t.true(renewed.secret_url.endsWith(`/webhooks/${id}`));
    const sent = await callTool<DeliveryBody>(t, agent, "test_webhook", { id });
    t.like(sent, { type: "webhook.test", status: "pending", attempts: [] });
    await waitForDelivery(api, { id }, ({ status }) => status === "succeeded");
    const page = await callTool<DeliveryPage>(t, agent, "list_webhook_deliveries", { id, limit: 5 });
    t.deepEqual(page.data, await allDeliveriesOf(api, { id }));
    t.like(page.data[0]?.attempts, [{ status: 204 }]);
    const again = await callTool<DeliveryBody>(t, agent, "resend_webhook_delivery", {
      id,
      delivery_id: sent.id,
    });
    t.is(again.id, sent.id);
    for (const request of await receiver.waitFor(path, 2)) {
      t.is(request.headers["webhook-id"], sent.id);
      t.truthy(verify(request, secret), "the previous secret still signs");
      t.is(String(request.headers["webhook-signature"]).split(" ").length, 2, "and so does the new one");
    }
    await agent.close();
  });

  const failures: [
    tool: string,
    args: Record<string, unknown>,
    status: number,
    code: string,
    field?: string,
  ][] = [
    ["create_webhook", {}, 422, "invalid_request", "url,events"],
    ["create_webhook", { url: "https://10.0.0.1/", events: ["link.created"] }, 422, "invalid_url", "url"],
    ["create_webhook", { url: "http://example.com/", events: ["link.created"] }, 422, "invalid_url", "url"],
    ["create_webhook", { url: "https://example.com/", events: [] }, 422, "invalid_events", "events"],
    ["create_webhook", { url: "https://example.com/", events: ["*"] }, 422, "invalid_events", "events.0"],
    [
      "create_webhook",
      { url: "https://example.com/", events: ["link.created"], secret: "whsec_AAAA" },
      422,
      "unknown_field",
      "secret",
    ],
    ["get_webhook", { id: "whk_unknown" }, 404, "not_found"],
    ["get_webhook", {}, 422, "invalid_id", "id"],
    ["list_webhooks", { limit: 0 }, 422, "invalid_limit", "limit"],
    ["list_webhooks", { cursor: "x" }, 422, "invalid_cursor", "cursor"],
    ["update_webhook", { id: "whk_unknown", enabled: true }, 404, "not_found"],
    ["update_webhook", { id: "MINE", url: "https://localhost/" }, 422, "invalid_url", "url"],
    ["update_webhook", { id: "MINE", plan: "premium" }, 422, "unknown_field", "plan"],
    ["delete_webhook", { id: "whk_unknown" }, 404, "not_found"],
    ["rotate_webhook_secret", { id: "whk_unknown" }, 404, "not_found"],
    ["test_webhook", { id: "whk_unknown" }, 404, "not_found"],
    ["test_webhook", { id: "MINE" }, 409, "webhook_disabled"],
    ["list_webhook_deliveries", { id: "whk_unknown" }, 404, "not_found"],
    ["list_webhook_deliveries", { id: "MINE", limit: 101 }, 422, "invalid_limit", "limit"],
    ["list_webhook_deliveries", { id: "MINE", status: "lost" }, 422, "invalid_status", "status"],
    ["get_webhook_delivery", { id: "MINE", delivery_id: "evt_unknown" }, 404, "not_found"],
    ["resend_failed_webhook_deliveries", { id: "MINE" }, 409, "webhook_disabled"],
    ["resend_webhook_delivery", { id: "MINE", delivery_id: "evt_unknown" }, 409, "webhook_disabled"],
    ["resend_webhook_delivery", { id: "MINE" }, 422, "invalid_delivery_id", "delivery_id"],
  ];
  for (const [tool, args, status, code, fields] of failures) {
    test(`${era}: ${tool} with ${JSON.stringify(args)} fails with ${code} and the fields to fix`, async (t) => {
      const { token, api } = await newOrganization();
      const { secret, ...mine } = await createWebhook(api, "https://example.com/");
      await api.send("PATCH", `/v1/webhooks/${mine.id}`, { json: { enabled: false } });
      const before = (await api.get<WebhookPage>("/v1/webhooks")).body;
      const agent = await connectMcp(url, token, era);
      const own = args.id === "MINE" ? { ...args, id: mine.id } : args;
      const failure = refusalOf(await agent.callTool({ name: tool, arguments: own }));
      t.like(failure, { status, code });
      t.truthy(failure?.detail);
      t.is(failure?.errors?.map(({ field }) => field).join(), fields);
      t.deepEqual((await api.get<WebhookPage>("/v1/webhooks")).body, before);
      await agent.close();
    });
  }

  for (const tool of [
    "get_webhook",
    "update_webhook",
    "delete_webhook",
    "rotate_webhook_secret",
    "test_webhook",
    "list_webhook_deliveries",
    "get_webhook_delivery",
    "resend_webhook_delivery",
    "resend_failed_webhook_deliveries",
  ]) {
    test(`${era}: ${tool} does not find a webhook of another organization`, async (t) => {
      const [{ token }, { api: stranger }] = [await newOrganization(), await newOrganization()];
      const { secret, ...theirs } = await createWebhook(stranger, "https://example.com/");
      const agent = await connectMcp(url, token, era);
      const args = { id: theirs.id, ...(tool.endsWith("webhook_delivery") && { delivery_id: "evt_x" }) };
      t.is(refusalOf(await agent.callTool({ name: tool, arguments: args }))?.code, "not_found");
      t.deepEqual((await stranger.get<WebhookBody>(`/v1/webhooks/${theirs.id}`)).body, theirs);
      await agent.close();
    });
  }
}

const READERS = ["get_webhook", "get_webhook_delivery", "list_webhook_deliveries", "list_webhooks"];
const WRITERS = [
  "create_webhook",
  "delete_webhook",
  "resend_failed_webhook_deliveries",
  "resend_webhook_delivery",
  "rotate_webhook_secret",
  "test_webhook",
  "update_webhook",
];
for (const [scope, names] of [
  ["links:read links:write", []],
  ["webhooks:read", READERS],
  ["webhooks:write", [...READERS, ...WRITERS].sort()],
] as const) {
  test(`a token with ${scope} lists ${names.length} webhook tools and gets a challenge for the others`, async (t) => {
    const app = await service.createOrganization();
    const token = await service.token(app, { scope });
    const agent = await connectMcp(url, token);
    const { tools } = await agent.listTools();
    t.deepEqual(
      tools
        .map(({ name }) => name)
        .filter((name) => name.includes("webhook"))
        .sort(),
      [...names],
    );
    await agent.close();
    for (const name of [...READERS, ...WRITERS].filter((one) => !names.includes(one as never))) {
      const { message, headers } = modernRequest("tools/call", { name, arguments: { id: "whk_x" } });
      const reply = await postMcp(url, message, { ...MCP_HEADERS, ...headers, ...bearer(token) });
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      const missing = READERS.includes(name) ? "webhooks:read" : "webhooks:write";
      t.is(challengeOf(reply)?.scope, `${scope} ${missing}`, "with the scopes that the token has");
    }
  });
}

const WEBHOOK = { url: "https://hooks.example.com/in", events: ["link.created"] };
const SECRET = /whsec_/;
type Shown = WebhookBody & { secret_url: string };

/** Creates an organization, with functions that call tools and the API. */
async function newToolCaller() {
  const organization = await service.createOrganization();
  const token = await service.token(organization);
  const api = apiAt(service.url, token);
  return {
    organization,
    /** Calls a tool, and returns the whole response as text with its result. */
    async call(era: Era, name: string, args: object) {
      const { message, headers } = modernRequest("tools/call", { name, arguments: args });
      const legacy = { ...message, params: { name, arguments: args } };
      const { text, rpc } = await postMcp(service.urls.mcp, era === "2026-07-28" ? message : legacy, {
        ...(era === "2026-07-28" && headers),
        ...bearer(token),
      });
      const result = rpc?.result as { structuredContent?: Shown; _meta?: { idempotency_replayed?: boolean } };
      return {
        text,
        webhook: result.structuredContent as Shown,
        isReplayed: result._meta?.idempotency_replayed,
      };
    },
    post: (path: string, key: string, json?: object) =>
      api.send<NewWebhookBody>("POST", path, { ...(json && { json }), headers: { "idempotency-key": key } }),
  };
}

for (const era of ALL_ERAS) {
  test(`${era}: no answer of a tool contains a webhook secret`, async (t) => {
    const { organization, call } = await newToolCaller();
    const created = await call(era, "create_webhook", WEBHOOK);
    const { id, secret_url } = created.webhook;
    t.is(secret_url, `${service.url}/dashboard/organizations/${organization.id}/webhooks/${id}`);
    for (const { text } of [
      created,
      await call(era, "rotate_webhook_secret", { id }),
      await call(era, "get_webhook", { id }),
      await call(era, "list_webhooks", {}),
      await call(era, "update_webhook", { id, enabled: true }),
      await call(era, "test_webhook", { id }),
      await call(era, "list_webhook_deliveries", { id }),
      await call(era, "create_webhook", { ...WEBHOOK, secret: "mine" }),
      await call(era, "delete_webhook", { id }),
    ]) {
      t.notRegex(text, SECRET);
      t.false(text.includes('"secret"'));
    }
  });

  test(`${era}: a key used over REST is replayed to an agent without the secret`, async (t) => {
    const { call, post } = await newToolCaller();
    const [creation, rotation] = [randomUUID(), randomUUID()];
    const created = await post("/v1/webhooks", creation, WEBHOOK);
    t.regex(created.body.secret, SECRET);
    const again = await call(era, "create_webhook", { ...WEBHOOK, idempotency_key: creation });
    t.true(again.isReplayed);
    t.is(again.webhook.id, created.body.id);
    t.notRegex(again.text, SECRET);

    const { id } = created.body;
    const rotated = await post(`/v1/webhooks/${id}/rotate-secret`, rotation);
    t.regex(rotated.body.secret, SECRET);
    const repeated = await call(era, "rotate_webhook_secret", { id, idempotency_key: rotation });
    t.true(repeated.isReplayed);
    t.notRegex(repeated.text, SECRET);
  });

  test(`${era}: a key used by an agent shows no secret over REST`, async (t) => {
    const { call, post } = await newToolCaller();
    const key = randomUUID();
    const created = await call(era, "create_webhook", { ...WEBHOOK, idempotency_key: key });
    const replayed = await post("/v1/webhooks", key, WEBHOOK);
    isProblem(t, replayed, { status: 409, code: "secret_shown_once" });
    t.is(replayed.headers.get("idempotency-replayed"), "true");
    const again = await call(era, "create_webhook", { ...WEBHOOK, idempotency_key: key });
    t.true(again.isReplayed);
    t.deepEqual(again.webhook, created.webhook);
    t.notRegex(again.text, SECRET);
  });
}
