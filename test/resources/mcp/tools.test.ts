import { Ajv2020 } from "ajv/dist/2020.js";
import test from "ava";
import { apiAt, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { ALL_ERAS, callTool, connectMcp, outputSchemaOf, refusalOf } from "../../harness/clients/mcp.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });

const app = await service.createOrganization();
const token = await service.token(app);

const [a, b] = [await service.createOrganization(), await service.createOrganization()];
const apiA = apiAt(service.url, await service.token(a));

test.after.always(async () => {
  await service.close();
  await receiver.close();
});

type Output = Record<string, unknown> & { id: string };

for (const era of ALL_ERAS) {
  test(`${era}: every tool result matches its output schema, and those that it refers to`, async (t) => {
    const token = await service.token(await service.createOrganization());
    const client = await connectMcp(`${service.url}/mcp`, token, era);
    const { tools } = await client.listTools();
    const called = new Set<string>();
    const ajv = new Ajv2020({ strict: false });
    // Once it has listed the tools, the client validates each result and throws if it differs from the schema.
    async function call(name: string, args: Record<string, unknown> = {}) {
      const result = await client.callTool({ name, arguments: args });
      t.falsy(result.isError, JSON.stringify(result.content));
      t.truthy(result.structuredContent, name);
      const matches = ajv.validate(outputSchemaOf(tools, name), result.structuredContent);
      t.true(matches, `${name}: ${ajv.errorsText()}`);
      called.add(name);
      return result.structuredContent as Output;
    }
    const url = "https://example.com/";

    await call("whoami");
    const { id } = await call("create_link", {
      url,
      metadata: { a: 1, b: null },
      tags: ["x"],
      max_clicks: 5,
      expires_at: "2099-01-01T00:00:00Z",
    });
    await call("create_links", { links: [{ url }, { url: "nonsense" }] });
    await call("upsert_link", { external_id: "mine", url });
    await call("get_link", { id });
    await call("list_links", { limit: 1 });
    await call("update_link", { id, title: "x" });
    await call("get_link_analytics", { id });
    await call("get_analytics");
    await call("delete_link", { id });

    const webhook = await call("create_webhook", { url: receiver.url("/"), events: ["webhook.test"] });
    await call("get_webhook", { id: webhook.id });
    await call("list_webhooks");
    await call("update_webhook", { id: webhook.id, enabled: true });
    await call("rotate_webhook_secret", { id: webhook.id });
    const delivery = await call("test_webhook", { id: webhook.id });
    await call("list_webhook_deliveries", { id: webhook.id });
    await call("get_webhook_delivery", { id: webhook.id, delivery_id: delivery.id });
    await call("resend_webhook_delivery", { id: webhook.id, delivery_id: delivery.id });
    await call("resend_failed_webhook_deliveries", { id: webhook.id });
    await call("delete_webhook", { id: webhook.id });
    await call("list_events");

    t.deepEqual([...called].sort(), tools.map(({ name }) => name).sort());
    await client.close();
  });
}

test("a result without a field, or with one of another type, does not match the schema that it refers to", async (t) => {
  const token = await service.token(await service.createOrganization());
  const client = await connectMcp(`${service.url}/mcp`, token);
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: "create_link", arguments: { url: "https://example.com/" } });
  const link = result.structuredContent as object;
  const matches = (data: unknown) =>
    new Ajv2020({ strict: false }).validate(outputSchemaOf(tools, "create_link"), data);
  t.true(matches(link));
  t.false(matches({ ...link, slug: undefined }));
  t.false(matches({ ...link, clicks: "many" }));
  t.false(matches({ ...link, title: 5 }));
  await client.close();
});

const api = apiAt(service.url, token);

const WRITES = ["create_link", "create_links", "upsert_link", "update_link", "delete_link"];
const READS = ["whoami", "get_link", "list_links", "get_link_analytics", "get_analytics"];

for (const era of ALL_ERAS) {
  const connect = () => connectMcp(`${service.url}/mcp`, token, era);

  test(`${era}: the client negotiates the revision and gets the server info`, async (t) => {
    const client = await connect();
    t.is(client.getNegotiatedProtocolVersion() ?? "", era);
    t.is(client.getServerVersion()?.name, "linkgate");
    t.truthy(client.getInstructions());
    t.deepEqual(Object.keys(client.getServerCapabilities() ?? {}).sort(), [
      "completions",
      "extensions",
      "prompts",
      "resources",
      "tools",
    ]);
    await client.close();
  });

  test(`${era}: every tool has a title, a description, schemas and annotations`, async (t) => {
    const client = await connect();
    const { tools } = await client.listTools();
    for (const name of [...READS, ...WRITES]) {
      const tool = tools.find((candidate) => candidate.name === name);
      t.truthy(tool?.title && tool.description, name);
      t.is(tool?.inputSchema.type, "object");
      t.is(tool?.inputSchema.additionalProperties, false);
      t.is(tool?.outputSchema?.type, "object");
      t.is(tool?.annotations?.readOnlyHint, READS.includes(name), name);
      t.is(tool?.annotations?.openWorldHint, false);
    }
    const destructive = tools
      .filter(({ annotations }) => annotations?.destructiveHint)
      .map(({ name }) => name);
    t.true(destructive.includes("delete_link") && destructive.includes("update_link"));
    t.false(destructive.includes("create_link") || destructive.includes("create_links"));
    const warned = tools.filter(({ description }) => description?.includes("Referrers are untrusted"));
    t.deepEqual(warned.map(({ name }) => name).sort(), ["get_analytics", "get_link_analytics"]);
    await client.close();
  });

  test(`${era}: whoami returns the organization, the client and the scopes`, async (t) => {
    const client = await connect();
    type Me = {
      organization: { id: string; name: string; plan: string };
      client_id: string;
      user_id: null;
      scopes: string[];
    };
    const me = await callTool<Me>(t, client, "whoami");
    t.is(me.organization.id, app.id);
    t.is(me.organization.plan, "growth");
    t.is(me.client_id, app.clientId);
    t.is(me.user_id, null);
    t.true(me.scopes.includes("links:write"));
    await client.close();
  });

  test(`${era}: a link is created, read, listed, updated and deleted as over REST`, async (t) => {
    const client = await connect();
    const fields = {
      url: "https://example.com/mcp",
      slug: `by-mcp-${era}`,
      title: "By MCP",
      tags: [`tag-${era}`],
      external_id: `mcp-${era}`,
      metadata: { a: 1, b: "x", c: null },
      expires_at: "2099-01-01T00:00:00Z",
      max_clicks: 3,
      redirect_type: 307,
    };
    const created = await callTool<LinkBody>(t, client, "create_link", fields);
    t.like(created, { ...fields, expires_at: "2099-01-01T00:00:00.000Z" });
    t.deepEqual((await api.get(`/v1/links/${created.id}`)).body, created);
    t.deepEqual(await callTool<LinkBody>(t, client, "get_link", { id: created.id }), created);
    const page = await callTool<PageBody>(t, client, "list_links", {
      tag: `tag-${era}`,
      archived: false,
      limit: 5,
    });
    t.deepEqual(page, { data: [created], next_cursor: null });
    t.is((await fetch(created.short_url, { redirect: "manual" })).status, 307);
    const changes = { title: null, max_clicks: null, archived: true, tags: [] };
    const changed = await callTool<LinkBody>(t, client, "update_link", { id: created.id, ...changes });
    t.like(changed, changes);
    t.is(changed.url, created.url);
    const { id } = created;
    await callTool<LinkBody>(t, client, "update_link", { ...fields, tags: [], id });
    const empty = { title: "", external_id: "", expires_at: "", fallback_url: "", max_clicks: 0 };
    t.like(await callTool<LinkBody>(t, client, "update_link", { id, ...empty }), {
      title: null,
      external_id: null,
      expires_at: null,
      fallback_url: null,
      max_clicks: null,
    });
    t.deepEqual(await callTool(t, client, "delete_link", { id: created.id }), {
      deleted: true,
      id: created.id,
    });
    t.is((await api.get(`/v1/links/${created.id}`)).status, 404);
    t.is((await fetch(created.short_url, { redirect: "manual" })).status, 410);
    await client.close();
  });

  test(`${era}: the pages of list_links add up to the whole list`, async (t) => {
    const other = await service.createOrganization();
    const owner = apiAt(service.url, await service.token(other));
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) ids.unshift((await owner.createLink()).id);
    const client = await connectMcp(`${service.url}/mcp`, await service.token(other), era);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page: PageBody = await callTool<PageBody>(t, client, "list_links", {
        limit: 3,
        ...(cursor && { cursor }),
      });
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor);
    t.deepEqual(seen, ids);
    await client.close();
  });

  const failures: [
    tool: string,
    args: Record<string, unknown>,
    status: number,
    code: string,
    field?: string,
  ][] = [
    ["create_link", { url: "javascript:alert(1)" }, 422, "invalid_url", "url"],
    ["create_link", { url: `${service.url}/x` }, 422, "invalid_url", "url"],
    ["create_link", { url: 5 }, 422, "invalid_url", "url"],
    ["create_link", {}, 422, "invalid_url", "url"],
    ["create_link", { url: "https://example.com", slug: "MCP" }, 422, "invalid_slug", "slug"],
    ["create_link", { url: "https://example.com", slug: "mcp-taken" }, 409, "slug_taken", "slug"],
    ["create_link", { url: "https://example.com", clicks: 5 }, 422, "unknown_field", "clicks"],
    [
      "create_link",
      { url: "https://example.com", organization_id: "org_x" },
      422,
      "unknown_field",
      "organization_id",
    ],
    [
      "create_link",
      { url: "https://example.com", expires_at: "2020-01-01T00:00:00Z" },
      422,
      "invalid_expires_at",
      "expires_at",
    ],
    ["create_link", { url: "https://example.com/\ud800" }, 422, "invalid_url", "url"],
    ["create_links", { links: [] }, 422, "invalid_links", "links"],
    ["create_links", {}, 422, "invalid_links", "links"],
    ["upsert_link", { url: "https://example.com" }, 422, "invalid_external_id", "external_id"],
    ["upsert_link", { external_id: null, url: "https://a.b" }, 422, "invalid_external_id", "external_id"],
    [
      "upsert_link",
      { external_id: "a\u0000", url: "https://a.b" },
      422,
      "invalid_external_id",
      "external_id",
    ],
    ["upsert_link", { external_id: "rejected" }, 422, "invalid_url", "url"],
    ["get_link_analytics", { id: "lnk_unknown" }, 404, "not_found"],
    ["get_link_analytics", { from: "2030-01-01" }, 422, "invalid_id", "id"],
    ["get_analytics", { from: "yesterday" }, 422, "invalid_from", "from"],
    ["get_analytics", { from: "2020-01-01", to: "2029-01-01" }, 422, "invalid_from", "from"],
    ["get_link", { id: "lnk_unknown" }, 404, "not_found"],
    ["get_link", {}, 422, "invalid_id", "id"],
    ["get_link", { id: 5 }, 422, "invalid_id", "id"],
    ["get_link", { id: "lnk_\u0000" }, 404, "not_found"],
    ["list_links", { limit: 0 }, 422, "invalid_limit", "limit"],
    ["list_links", { limit: 101 }, 422, "invalid_limit", "limit"],
    ["list_links", { limit: "5" }, 422, "invalid_limit", "limit"],
    ["list_links", { archived: "true" }, 422, "invalid_archived", "archived"],
    ["list_links", { cursor: "abc" }, 422, "invalid_cursor", "cursor"],
    ["list_links", { search: "a\u0000" }, 422, "invalid_search", "search"],
    ["update_link", { id: "lnk_unknown", title: "x" }, 404, "not_found"],
    ["update_link", { title: "x" }, 422, "invalid_id", "id"],
    ["update_link", { id: "lnk_unknown", plan: "premium" }, 422, "unknown_field", "plan"],
    ["delete_link", { id: "lnk_unknown" }, 404, "not_found"],
    ["whoami", { organization_id: "org_x" }, 422, "unknown_field", "organization_id"],
  ];
  for (const [tool, args, status, code, field] of failures) {
    test(`${era}: ${tool} with ${JSON.stringify(args)} fails with ${code} and the fields to fix`, async (t) => {
      await api.send("POST", "/v1/links", { json: { url: "https://example.com", slug: "mcp-taken" } });
      const client = await connect();
      const failure = refusalOf(await client.callTool({ name: tool, arguments: args }));
      t.is(failure?.status, status);
      t.is(failure?.code, code);
      t.truthy(failure?.detail);
      t.deepEqual(
        failure?.errors?.map((error) => error.field),
        field ? [field] : undefined,
      );
      await client.close();
    });
  }

  test(`${era}: an unknown tool is a protocol error`, async (t) => {
    const client = await connect();
    for (const name of ["nothing", "", "create_link ", "CREATE_LINK", "__proto__"]) {
      const error = await t.throwsAsync(client.callTool({ name, arguments: {} }));
      t.is((error as { code?: number } | undefined)?.code, -32602, name);
    }
    await client.close();
  });
}

const url = `${service.url}/mcp`;

for (const era of ALL_ERAS) {
  for (const [tool, args] of [
    ["get_link", {}],
    ["update_link", { title: "stolen" }],
    ["delete_link", {}],
  ] as const) {
    test(`${era}: ${tool} does not find a link of another organization`, async (t) => {
      const link = await apiA.createLink();
      const client = await connectMcp(url, await service.token(b), era);
      const call = async (id: string) =>
        refusalOf(await client.callTool({ name: tool, arguments: { id, ...args } }));
      const { request_id: _one, ...failure } = (await call(link.id)) ?? {};
      const { request_id: _other, ...missing } = (await call("lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV")) ?? {};
      t.like(failure, { status: 404, code: "not_found" });
      t.deepEqual(failure, missing);
      t.deepEqual((await apiA.get(`/v1/links/${link.id}`)).body, link);
      await client.close();
    });
  }

  test(`${era}: list_links returns only the organization's links and rejects another organization's cursor`, async (t) => {
    for (const _ of [1, 2, 3]) await apiA.createLink({ title: "common" });
    const [clientA, clientB] = [
      await connectMcp(url, await service.token(a), era),
      await connectMcp(url, await service.token(b), era),
    ];
    const query = { search: "common", limit: 1 };
    const first = await clientA.callTool({ name: "list_links", arguments: query });
    const { next_cursor: cursor } = first.structuredContent as PageBody;
    t.is(typeof cursor, "string");
    const empty = await clientB.callTool({ name: "list_links", arguments: query });
    t.deepEqual(empty.structuredContent, { data: [], next_cursor: null });
    const rejected = await clientB.callTool({ name: "list_links", arguments: { ...query, cursor } });
    t.is(refusalOf(rejected)?.code, "invalid_cursor");
    await Promise.all([clientA.close(), clientB.close()]);
  });

  test(`${era}: an app acts for the organization that the user chose, on behalf of the user`, async (t) => {
    const user = await service.createUser([a.id, b.id]);
    for (const chosen of [a, b]) {
      const tokens = await tokensFor(service, a, user, { organizationId: chosen.id });
      const client = await connectMcp(url, tokens.access_token, era);
      const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
      t.like(structuredContent, { organization: { id: chosen.id }, user_id: user.id });
      await client.close();
    }
  });
}

test("a cursor of the API works in MCP, but only with the same filter", async (t) => {
  for (const _ of [1, 2]) await apiA.createLink({ tags: ["shared"] });
  const { body } = await apiA.get<PageBody>("/v1/links?limit=1&tag=shared");
  const client = await connectMcp(url, await service.token(a));
  const call = (args: object) =>
    client.callTool({ name: "list_links", arguments: { cursor: body.next_cursor, ...args } });
  t.is(refusalOf(await call({ tag: "shared" })), undefined);
  t.is(refusalOf(await call({ tag: "other" }))?.code, "invalid_cursor");
  await client.close();
});
