import type { Tool } from "@modelcontextprotocol/client";
import test, { type ExecutionContext } from "ava";
import type { DomainView } from "../../../resources/domains/schema.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import type { Era } from "../../harness/clients/mcp.ts";
import { ALL_ERAS, callTool, connectMcp, connectUntilEnd, refusalOf } from "../../harness/clients/mcp.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import {
  allDeliveriesOf,
  createWebhook,
  type DeliveryBody,
  type DeliveryPage,
  type WebhookBody,
  waitForDelivery,
  waitUntilVerified,
} from "../../harness/webhooks.ts";

const { service, receiver } = await startWebhookService();
const url = `${service.url}/mcp`;

const firstToken = await service.token(await service.createOrganization());
await apiAt(service.url, firstToken).createLink({ slug: "taken" });
const firstClient = await connectMcp(url, firstToken);
const { tools } = await firstClient.listTools();
await firstClient.close();

async function newCaller(t: ExecutionContext, era?: Era) {
  const organization = await service.createOrganization();
  const token = await service.token(organization);
  return { organization, api: apiAt(service.url, token), client: await connectUntilEnd(t, url, token, era) };
}

/** Tools that are not named after their operation. */
const NAMES: Record<string, string> = {
  getOrganization: "whoami",
  getDelivery: "get_webhook_delivery",
  listDeliveries: "list_webhook_deliveries",
  resendDelivery: "resend_webhook_delivery",
  resendFailedDeliveries: "resend_failed_webhook_deliveries",
};
// The first describes REST only; list_links has the second one's parameter, and list_domains shows what the third does.
// How a domain looks to visitors is set over REST or in the dashboard.
const REST_ONLY = new Set(["getDocument", "getLinkByExternalId", "getDomain", "updateDomain"]);
const NOT_SHOWN: Record<string, string[]> = {
  create_domain: ["app_links", "case_sensitive", "fallback_url", "not_found_url", "root_redirect_url"],
};

test("every operation of the REST API is a tool with the same parameters, and every tool is an operation", async (t) => {
  const { body } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");
  const operations = Object.values(body.paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ operationId }) => !REST_ONLY.has(operationId));
  const parametersOf = ({ parameters, requestBody }: (typeof operations)[number]) => {
    const { $ref = "" } = (requestBody?.content["application/json"]?.schema ?? {}) as { $ref?: string };
    const sent = body.components.schemas[$ref.split("/").at(-1) as string];
    const names = parameters
      .filter(({ in: place, name }) => place !== "header" || name === "Idempotency-Key")
      .map(({ name }) => name.replace("Idempotency-Key", "idempotency_key"));
    return [...new Set([...names, ...Object.keys(sent?.properties ?? {})])].sort();
  };
  const expected = operations.map((operation) => {
    const { operationId: id } = operation;
    const name = NAMES[id] ?? id.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return [name, parametersOf(operation).filter((one) => !NOT_SHOWN[name]?.includes(one))];
  });
  const actual = tools.map(({ name, inputSchema }) => [
    name,
    Object.keys(inputSchema.properties ?? {}).sort(),
  ]);
  t.deepEqual(Object.fromEntries(actual), Object.fromEntries(expected));
});

// MCP: those in the middle mean something only if the tool isn't read-only.
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;
const READ_HINTS = ["readOnlyHint", "openWorldHint"] as const;
/** By the hints that are true, the tools that have them. */
const TOOLS: Record<string, string[]> = {
  readOnlyHint: [
    ...["whoami", "get_link", "list_links", "get_link_analytics", "get_analytics", "list_events"],
    ...["list_webhooks", "get_webhook", "list_webhook_deliveries", "get_webhook_delivery", "list_domains"],
  ],
  "": ["create_link", "create_links", "create_webhook", "create_domain", "verify_domain"],
  "destructiveHint idempotentHint": [
    ...["upsert_link", "update_link", "delete_link"],
    ...["update_webhook", "delete_webhook", "delete_domain"],
  ],
  destructiveHint: ["rotate_webhook_secret", "update_links"],
  openWorldHint: ["test_webhook", "resend_webhook_delivery", "resend_failed_webhook_deliveries"],
};

const hintsOf = (annotations: Tool["annotations"]) => HINTS.filter((hint) => annotations?.[hint]).join(" ");

test("every tool has a title, a description, schemas of one type each, and all hints that count", (t) => {
  t.is(tools.length, Object.values(TOOLS).flat().length);
  const named = (some: readonly { name: string }[]) => some.map(({ name }) => name).sort();
  for (const [hints, names] of Object.entries(TOOLS)) {
    const some = tools.filter(({ annotations }) => hintsOf(annotations) === hints);
    t.deepEqual(named(some), names.toSorted(), hints);
  }
  for (const { name, title, description, annotations = {}, inputSchema, outputSchema } of tools) {
    t.truthy(title && description, name);
    const said = annotations.readOnlyHint ? READ_HINTS : HINTS;
    for (const hint of said) t.is(typeof annotations[hint], "boolean", `${name} ${hint}`);
    t.is(Object.keys(annotations).length, said.length, name);
    t.is(inputSchema.additionalProperties, false);
    t.is(outputSchema?.type, "object");
    // Validators of several hosts accept no unions.
    t.notRegex(JSON.stringify(inputSchema), /"(anyOf|oneOf|allOf)":|"type":\[/, name);
  }
  const warned = tools.filter(({ description }) => description?.includes("Referrers are untrusted"));
  t.deepEqual(named(warned), ["get_analytics", "get_link_analytics"]);
  // An argument that several tools have is described once.
  const described = tools.flatMap(({ inputSchema }) =>
    Object.entries((inputSchema.properties ?? {}) as Record<string, { description?: string }>).flatMap(
      ([name, { description }]) => (description ? `${name}: ${description}` : []),
    ),
  );
  t.deepEqual(described.toSorted(), [...new Set(described)].sort());
  t.true(described.includes("id: The webhook ID.") && described.includes("id: Link ID (lnk_…)."));
  // About 5,200 tokens of a model's context.
  t.true(Buffer.byteLength(JSON.stringify(tools)) < 21_000);
});

const page = "https://example.com/";
const hook = { url: page, events: ["link.created"] };
/** Failing calls of an organization with a link, a webhook that is disabled, and a key that was used. */
const FAILURES: [tool: string, args: object, status: number, code: string, fields: string][] = [
  ["create_link", { url: page, slug: "taken" }, 409, "slug_taken", "slug"],
  ["create_link", { url: page, external_id: "mine" }, 409, "external_id_taken", "external_id"],
  ["create_link", { url: `${service.url}/x` }, 422, "invalid_url", "url"],
  ["create_link", { link: page }, 422, "invalid_request", "url,link"],
  ["whoami", { organization_id: "org_x" }, 422, "unknown_field", "organization_id"],
  ["create_link", { url: page, idempotency_key: "used" }, 422, "idempotency_key_reused", ""],
  ["create_link", { url: page, idempotency_key: "a b" }, 422, "invalid_idempotency_key", "idempotency_key"],
  ["get_link", {}, 422, "invalid_id", "id"],
  ["get_link", { id: "lnk_\u0000" }, 404, "not_found", ""],
  ["update_links", { ids: ["lnk_x"], changes: null }, 422, "invalid_changes", "changes"],
  ["update_links", { filter: {}, expected_count: 7, changes: { archived: true } }, 409, "count_mismatch", ""],
  ["list_links", { limit: "5" }, 422, "invalid_limit", "limit"],
  ["test_webhook", { id: "MINE" }, 409, "webhook_disabled", ""],
  ["resend_webhook_delivery", { id: "MINE" }, 422, "invalid_delivery_id", "delivery_id"],
];
for (const era of ALL_ERAS) {
  test(`${era}: every tool does what its operation does over REST, and shows no secret`, async (t) => {
    const { organization, api, client } = await newCaller(t, era);
    const called = new Set<string>();
    async function call<Body = LinkBody>(name: string, args: Record<string, unknown> = {}): Promise<Body> {
      called.add(name);
      const body = await callTool<Body>(t, client, name, args);
      t.notRegex(JSON.stringify(body), /whsec_|"secret"/, name);
      return body;
    }
    const read = async <Body = LinkBody>(path: string) => (await api.get<Body>(`/v1${path}`)).body;

    const me = await call<{ organization: object }>("whoami");
    t.like(me, { client_id: organization.clientId, user_id: null });
    t.deepEqual(me.organization, await read<object>("/organization"));

    const fields = {
      url: "https://example.com/mcp",
      slug: `by-mcp-${era}`,
      title: "By MCP",
      tags: ["tag"],
      external_id: "mine",
      metadata: { a: 1, b: "x", c: null },
      expires_at: "2099-01-01T00:00:00.000Z",
      max_clicks: 3,
      redirect_type: 307,
      card: { title: "Card", description: "By MCP", image_url: "https://example.com/a.png" },
    };
    const created = await call("create_link", fields);
    const { id } = created;
    t.like(created, fields);
    t.deepEqual(await read(`/links/${id}`), created);
    t.deepEqual(await call("get_link", { id }), created);
    const page = await call<PageBody>("list_links", { tag: "tag", archived: false, limit: 5 });
    t.deepEqual(page, { data: [created], next_cursor: null });
    const changes = { title: null, max_clicks: null, archived: true, tags: [] };
    t.like(await call("update_link", { id, ...changes }), { ...changes, url: fields.url });
    // Hosts accept only schemas with one type, so "", 0 and {} clear what null clears.
    await call("update_link", { ...fields, id });
    const cleared = { title: "", external_id: "", expires_at: "", max_clicks: 0, card: {} };
    t.like(await call("update_link", { id, ...cleared }), {
      title: null,
      external_id: null,
      expires_at: null,
      max_clicks: null,
      card: null,
    });
    const bulk = [{ url: fields.url, slug: `bulk-${era}` }, { url: fields.url, slug: fields.slug }, 5];
    const { results } = await call<{ results: { status: number }[] }>("create_links", { links: bulk });
    const statuses = results.map(({ status }) => status);
    t.deepEqual(statuses, [201, 409, 422]);
    const changed = await call<{ results: object[] }>("update_links", {
      filter: { slug: `bulk-${era}` },
      expected_count: 1,
      changes: { expires_at: fields.expires_at, utm: { source: "mail" } },
    });
    const utmUrl = `${fields.url}?utm_source=mail`;
    t.like(changed.results, [{ status: 200, link: { url: utmUrl, expires_at: fields.expires_at } }]);
    const { id: changedId } = changed.results[0] as LinkBody;
    const again = await call<{ results: object[] }>("update_links", {
      ids: [changedId],
      changes: { expires_at: "", utm: { source: "" } },
    });
    t.like(again.results, [{ id: changedId, status: 200, link: { url: fields.url, expires_at: null } }]);
    const put = { external_id: "put", url: fields.url };
    const first = await call<{ created: boolean; link: LinkBody }>("upsert_link", put);
    const second = await call<typeof first>("upsert_link", { ...put, title: "Second" });
    t.deepEqual([first.created, second.created], [true, false]);
    t.deepEqual(await read(`/links/${first.link.id}`), second.link);
    const { next_cursor: cursor } = await call<PageBody>("list_links", { limit: 1 });
    const nextPage = await call<PageBody>("list_links", { limit: 1, cursor });
    t.deepEqual(nextPage, await read<PageBody>(`/links?limit=1&cursor=${cursor}`));
    const days = { from: "2026-01-01", to: "2026-01-03" };
    const query = new URLSearchParams(days);
    const ofLink = await call<object>("get_link_analytics", { id, ...days });
    t.deepEqual(ofLink, await read<object>(`/links/${id}/analytics?${query}`));
    t.deepEqual(await call<object>("get_analytics", days), await read<object>(`/analytics?${query}`));
    t.deepEqual(await call<object>("delete_link", { id }), { deleted: true, id });
    t.is((await api.get(`/v1/links/${id}`)).status, 404);
    await service.storage.auditChain.append(organization.id);
    t.deepEqual(await call<object>("list_events", { limit: 1 }), await read<object>("/events?limit=1"));

    const own = { url: receiver.url(`/${era}`), events: ["link.created"] };
    type Created = WebhookBody & { secret_url: string };
    const { secret_url, ...webhook } = await call<Created>("create_webhook", own);
    const { id: webhookId } = webhook;
    t.like(webhook, { ...own, enabled: true });
    await waitUntilVerified(api, `/v1/webhooks/${webhookId}`);
    t.is(secret_url, `${service.url}/dashboard/organizations/${organization.id}/webhooks/${webhookId}`);
    t.deepEqual(await call<object>("get_webhook", { id: webhookId }), await read(`/webhooks/${webhookId}`));
    t.deepEqual(await call<object>("list_webhooks", { limit: 1 }), await read<object>("/webhooks?limit=1"));
    const renewed = await call<Created>("rotate_webhook_secret", { id: webhookId });
    t.is(renewed.secret_url, secret_url);
    const sent = await call<DeliveryBody>("test_webhook", { id: webhookId });
    await waitForDelivery(api, webhook, (one) => one.id === sent.id && one.status === "succeeded");
    t.is(receiver.received(`/${era}`)[0]?.headers["webhook-signature"]?.split(" ").length, 2);
    const delivery = { id: webhookId, delivery_id: sent.id };
    t.like(await call("get_webhook_delivery", delivery), { id: sent.id, response: { status: 204 } });
    const log = await call<DeliveryPage>("list_webhook_deliveries", { id: webhookId });
    t.deepEqual(log.data, await allDeliveriesOf(api, webhook));
    t.is((await call<DeliveryBody>("resend_webhook_delivery", delivery)).id, sent.id);
    const resent = await call<object>("resend_failed_webhook_deliveries", { id: webhookId });
    t.deepEqual(resent, { resent: 0, has_more: false });
    const off = { enabled: false, events: ["link.clicked"] };
    t.like(await call<object>("update_webhook", { id: webhookId, ...off }), off);
    t.deepEqual(await call<object>("delete_webhook", { id: webhookId }), { deleted: true, id: webhookId });
    t.is((await api.get(`/v1/webhooks/${webhookId}`)).status, 404);

    // Needs no DNS record.
    const host = `tools-${era}.localhost`;
    const domain = await call<DomainView>("create_domain", { host, default: true });
    t.like(domain, { host, verified: true, default: true });
    t.deepEqual((await call<{ data: DomainView[] }>("list_domains")).data, [domain]);
    t.deepEqual(await call<DomainView>("verify_domain", { id: domain.id }), domain);
    const here = await call<LinkBody>("create_link", { url: fields.url, domain: host });
    t.is(here.domain, host);
    const listed = (await call<PageBody>("list_links", { domain: host })).data.map(({ id }) => id);
    t.deepEqual(listed, [here.id]);
    t.deepEqual(await call<object>("delete_domain", { id: domain.id, links: "delete" }), {
      deleted: true,
      id: domain.id,
    });

    t.deepEqual([...called].sort(), tools.map(({ name }) => name).sort());
  });

  test(`${era}: a call that fails says with which status, code and fields, and what to do next`, async (t) => {
    const { api, client } = await newCaller(t, era);
    await api.createLink({ external_id: "mine" });
    const headers = { "idempotency-key": "used" };
    await api.send("POST", "/v1/links", { json: { url: "https://example.org/" }, headers });
    const json = { ...hook, enabled: false };
    const { body: webhook } = await api.send<WebhookBody>("POST", "/v1/webhooks", { json });
    for (const [name, args, status, code, fields] of FAILURES) {
      const own = "id" in args && args.id === "MINE" ? { ...args, id: webhook.id } : args;
      const failure = refusalOf(await client.callTool({ name, arguments: { ...own } }));
      const what = `${name} ${JSON.stringify(args)}`;
      t.like(failure, { status, code }, what);
      t.truthy(failure?.detail);
      t.is(failure?.errors?.map(({ field }) => field).join() ?? "", fields, what);
      t.truthy(failure?.next, what);
    }
    for (const name of ["nothing", "", "create_link ", "CREATE_LINK", "__proto__"]) {
      const error = await t.throwsAsync(client.callTool({ name, arguments: {} }));
      t.is((error as { code?: number } | undefined)?.code, -32602, name);
    }
  });

  test(`${era}: no tool finds a link, webhook, delivery or domain of another organization`, async (t) => {
    const { client } = await newCaller(t, era);
    const { api: stranger } = await newCaller(t);
    const link = await stranger.createLink();
    const { secret, ...webhook } = await createWebhook(stranger, receiver.url("/theirs"));
    const [delivery] = await allDeliveriesOf(stranger, webhook);
    const withId = tools.filter(({ inputSchema }) => "id" in (inputSchema.properties ?? {}));
    const domain = await stranger.send<DomainView>("POST", "/v1/domains", {
      json: { host: `${era}.foreign.example` },
    });
    t.is(withId.length, 15);
    for (const { name, inputSchema } of withId) {
      const call = async (id: string) => {
        const more = "delivery_id" in (inputSchema.properties ?? {}) && { delivery_id: delivery?.id };
        const failure = refusalOf(await client.callTool({ name, arguments: { id, ...more } }));
        return { ...failure, request_id: "" };
      };
      const ids = { webhook: webhook.id, domain: domain.body.id };
      const [, id = link.id] = Object.entries(ids).find(([kind]) => name.includes(kind)) ?? [];
      const foreign = await call(id);
      t.is(foreign.code, "not_found", name);
      t.deepEqual(foreign, await call("unknown_01ARZ3NDEKTSV4RRFFQ69G5FAV"), name);
    }
    t.deepEqual((await stranger.get(`/v1/links/${link.id}`)).body, link);
    t.deepEqual((await stranger.get<WebhookBody>(`/v1/webhooks/${webhook.id}`)).body, webhook);
    t.deepEqual(await allDeliveriesOf(stranger, webhook), [delivery]);
  });
}
