import test from "ava";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt, type LinkBody } from "../../harness/clients/api.ts";
import { ALL_ERAS, connectMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const token = await service.token(await service.createOrganization());
const api = apiAt(service.url, token);
const url = `${service.url}/mcp`;
test.after.always(() => service.close());

/** Tools that are not named after their operation. */
const NAMES: Record<string, string> = {
  getOrganization: "whoami",
  getDelivery: "get_webhook_delivery",
  listDeliveries: "list_webhook_deliveries",
  resendDelivery: "resend_webhook_delivery",
  resendFailedDeliveries: "resend_failed_webhook_deliveries",
};
// The first describes REST only; list_links has the second one's parameter.
const REST_ONLY = new Set(["getDocument", "getLinkByExternalId"]);

const toolOf = (operation: string) =>
  NAMES[operation] ?? operation.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

for (const era of ALL_ERAS) {
  test(`${era}: every operation of the REST API is a tool, and every tool is an operation`, async (t) => {
    const { body } = await api.get<OpenApiDocument>("/v1/openapi.json");
    const operations = Object.values(body.paths)
      .flatMap(Object.values)
      .map(({ operationId }) => operationId as string)
      .filter((name) => !REST_ONLY.has(name));
    const client = await connectMcp(url, token, era);
    const { tools } = await client.listTools();
    t.deepEqual(tools.map(({ name }) => name).sort(), operations.map(toolOf).sort());
    await client.close();
  });

  test(`${era}: a tool has the same parameters as its operation`, async (t) => {
    const { body } = await api.get<OpenApiDocument>("/v1/openapi.json");
    const client = await connectMcp(url, token, era);
    const { tools } = await client.listTools();
    for (const [path, operations] of Object.entries(body.paths)) {
      for (const { operationId, parameters, requestBody } of Object.values(operations)) {
        if (REST_ONLY.has(operationId)) continue;
        const tool = tools.find(({ name }) => name === toolOf(operationId));
        const { $ref = "" } = (requestBody?.content["application/json"]?.schema ?? {}) as { $ref?: string };
        const sent = body.components.schemas[$ref.split("/").at(-1) as string];
        const names = new Set([
          ...parameters.filter(({ in: place }) => place !== "header").map(({ name }) => name),
          ...parameters.filter(({ name }) => name === "Idempotency-Key").map(() => "idempotency_key"),
          ...Object.keys(sent?.properties ?? {}),
        ]);
        t.deepEqual(Object.keys(tool?.inputSchema.properties ?? {}).sort(), [...names].sort(), path);
      }
    }
    await client.close();
  });

  test(`${era}: whoami returns the same organization as REST`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
    const { organization } = structuredContent as { organization: Record<string, unknown> };
    const { usage, ...shown } = (await api.get<Record<string, unknown>>("/v1/organization")).body;
    // Other tests create links concurrently.
    t.deepEqual(Object.keys(organization.usage as object), Object.keys(usage as object));
    t.like(organization, shown);
    await client.close();
  });

  test(`${era}: create_links returns a result per link`, async (t) => {
    const client = await connectMcp(url, token, era);
    const slug = `bulk-${era}`;
    const links = [
      { url: "https://example.com/a", slug },
      { url: "https://example.com/b", slug },
      { url: "ftp://example.com/c" },
      5,
    ];
    const { structuredContent } = await client.callTool({ name: "create_links", arguments: { links } });
    const { results } = structuredContent as { results: { status: number; error?: { code: string } }[] };
    t.deepEqual(
      results.map(({ status, error }) => [status, error?.code]),
      [
        [201, undefined],
        [409, "slug_taken"],
        [422, "invalid_url"],
        [422, "invalid_request"],
      ],
    );
    for (const wrong of [{}, { links: [] }, { links: 5 }]) {
      const result = await client.callTool({ name: "create_links", arguments: wrong });
      t.is(refusalOf(result)?.code, "invalid_links");
    }
    await client.close();
  });

  test(`${era}: upsert_link creates a link once and replaces it after that`, async (t) => {
    const client = await connectMcp(url, token, era);
    const put = async (fields: object) =>
      (await client.callTool({ name: "upsert_link", arguments: { external_id: `put-${era}`, ...fields } }))
        .structuredContent as { created: boolean; link: LinkBody };
    const first = await put({ url: "https://example.com/1" });
    t.true(first.created);
    t.is(first.link.external_id, `put-${era}`);
    const changed = await put({ url: "https://example.com/2", title: "Second" });
    t.false(changed.created);
    t.like(changed.link, { id: first.link.id, slug: first.link.slug, title: "Second" });
    t.deepEqual((await api.get(`/v1/links/${first.link.id}`)).body, changed.link);
    const nameless = await client.callTool({
      name: "upsert_link",
      arguments: { url: "https://example.com" },
    });
    t.is(refusalOf(nameless)?.code, "invalid_external_id");
    const empty = { external_id: "", url: "https://example.com" };
    t.is(
      refusalOf(await client.callTool({ name: "upsert_link", arguments: empty }))?.code,
      "invalid_external_id",
    );
    await client.close();
  });

  test(`${era}: the analytics tools return the same as REST`, async (t) => {
    const client = await connectMcp(url, token, era);
    const link = await api.createLink();
    const days = { from: "2026-01-01", to: "2026-01-03" };
    const query = new URLSearchParams(days);
    const one = await client.callTool({ name: "get_link_analytics", arguments: { id: link.id, ...days } });
    t.deepEqual(one.structuredContent, (await api.get(`/v1/links/${link.id}/analytics?${query}`)).body);
    const all = await client.callTool({ name: "get_analytics", arguments: days });
    t.deepEqual(all.structuredContent, (await api.get(`/v1/analytics?${query}`)).body);
    for (const [name, args, code] of [
      ["get_link_analytics", { id: "lnk_unknown" }, "not_found"],
      ["get_link_analytics", {}, "invalid_id"],
      ["get_analytics", { from: "2026-02-30" }, "invalid_from"],
      ["get_analytics", { from: "2026-02-02", to: "2026-02-01" }, "invalid_from"],
      ["get_analytics", { id: link.id }, "unknown_field"],
    ] as const) {
      t.is(refusalOf(await client.callTool({ name, arguments: args }))?.code, code);
    }
    await client.close();
  });
}
