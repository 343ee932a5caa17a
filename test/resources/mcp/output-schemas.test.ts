import { Ajv2020 } from "ajv/dist/2020.js";
import test from "ava";
import { ALL_ERAS, connectMcp, outputSchemaOf } from "../../harness/clients/mcp.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
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
    await call("resend_webhook_delivery", { id: webhook.id, delivery_id: delivery.id });
    await call("delete_webhook", { id: webhook.id });

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
