import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { ALL_ERAS, connectUntilEnd, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const token = await service.token(await service.createOrganization());
const url = service.urls.mcpRead;
const REFUSED = /not found|unknown|disabled/i;

for (const era of ALL_ERAS) {
  test(`${era}: the read-only address lists the tools that only read, all of them, and their prompts`, async (t) => {
    const [whole, reading] = [
      await connectUntilEnd(t, service.urls.mcp, token, era),
      await connectUntilEnd(t, url, token, era),
    ];
    const { tools } = await reading.listTools();
    const readers = (await whole.listTools()).tools.filter((tool) => tool.annotations?.readOnlyHint);
    const namesOf = (all: { name: string }[]) => all.map(({ name }) => name);
    t.deepEqual(namesOf(tools), namesOf(readers));
    t.true(tools.length > 5 && tools.every((tool) => tool.annotations?.readOnlyHint));
    t.deepEqual(namesOf((await reading.listPrompts()).prompts), ["weekly_report"]);
    t.deepEqual(await reading.listResources(), await whole.listResources());
    t.regex(reading.getInstructions() ?? "", /changes nothing/);
    t.notRegex(reading.getInstructions() ?? "", /upsert_link|idempotency_key/);
    t.regex(whole.getInstructions() ?? "", /upsert_link/);
  });

  test(`${era}: at the read-only address a token with all scopes changes nothing, and gets no step-up`, async (t) => {
    const api = apiAt(service.url, token);
    const link = await api.createLink();
    const client = await connectUntilEnd(t, url, token, era);
    const { tools } = await (await connectUntilEnd(t, service.urls.mcp, token, era)).listTools();
    for (const { name } of tools.filter((tool) => !tool.annotations?.readOnlyHint)) {
      const called = client.callTool({ name, arguments: { id: link.id, url: "https://example.com/" } });
      t.regex((await t.throwsAsync(called, undefined, name))?.message ?? "", REFUSED, name);
    }
    await t.throwsAsync(client.getPrompt({ name: "clean_up_links", arguments: {} }), { message: REFUSED });
    t.deepEqual((await api.get(`/v1/links/${link.id}`)).body, link);
    const { structuredContent } = await client.callTool({ name: "get_link", arguments: { id: link.id } });
    t.like(structuredContent, { id: link.id });
  });
}

test("a batch changes nothing at the read-only address", async (t) => {
  const params = { name: "create_link", arguments: { url: "https://example.com/", slug: "batch-of-reads" } };
  const batch = [1, 2].map((id) => ({ jsonrpc: "2.0", id, method: "tools/call", params }));
  const { messages } = await postMcp(url, batch, bearer(token));
  t.true(messages.every(({ result, error }) => error !== undefined || result?.isError === true));
  t.is((await fetch(`${service.url}/batch-of-reads`)).status, 404);
});
