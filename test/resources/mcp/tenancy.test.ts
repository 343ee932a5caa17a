import test from "ava";
import { apiAt, type PageBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { ALL_ERAS, connectMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const [a, b] = [await service.createOrganization(), await service.createOrganization()];
const apiA = apiAt(service.url, await service.token(a));
test.after.always(() => service.close());
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
