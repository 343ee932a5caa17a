import { ResourceNotFoundError } from "@modelcontextprotocol/client";
import test from "ava";
import { isProblem, newApi } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { ALL_ERAS, connectUntilEnd, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, OPERATOR } from "../../harness/service.ts";

const { service, app, token, api } = await shareApi();
const url = `${service.url}/mcp`;
const webhooksToken = await service.token(app, { scope: "webhooks:write" });
const link = await api.createLink({ slug: "Spring-Sale", metadata: { a: 1 }, tags: ["mail"] });
const deleted = await api.createLink({ slug: "deleted" });
await api.send("DELETE", `/v1/links/${deleted.id}`);
await (await newApi(service)).createLink({ slug: "foreign" });

const uriOf = (slug: string) => `linkgate://links/${slug}`;
const NO_SLUGS = [
  ...["unknown", "foreign", "deleted", "spring-sale", "", "Spring-Sale?x", "Spring-Sale#x", "Spring-Sale/x"],
  ...["Spring%2DSale", "%zz", "%00", "x".repeat(5000)],
];
const NO_PAGES = [
  ...["unknown", "README", "mcp.md", "verify-audit-log.mjs", "../README", "..%2fREADME", "/etc/passwd"].map(
    (path) => `linkgate://docs/${path}`,
  ),
  "linkgate://webhooks/x",
  "file:///etc/passwd",
];
const textOf = ({ contents: [content] }: { contents: object[] }) =>
  content as { uri: string; mimeType: string; text: string };

for (const era of ALL_ERAS) {
  test(`${era}: a link is read by its slug, as get_link returns it`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    const { uri, mimeType, text } = textOf(await client.readResource({ uri: uriOf("Spring-Sale") }));
    t.deepEqual([uri, mimeType], [uriOf("Spring-Sale"), "application/json"]);
    t.deepEqual(JSON.parse(text), (await api.get(`/v1/links/${link.id}`)).body);
    const { id } = await api.createLink({ slug: `off-${era}` });
    await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true } });
    await service.storage.disabledLinks.disable(id, "phishing", OPERATOR);
    const { slug } = await api.createLink({ slug: `of/${era}` });
    t.like(JSON.parse(textOf(await client.readResource({ uri: uriOf(slug) })).text), { slug });
    const off = textOf(await client.readResource({ uri: uriOf(`off-${era}`) }));
    t.like(JSON.parse(off.text), { archived: true, disabled_reason: "phishing" });
  });

  test(`${era}: each page of the documentation is listed with a title, and is read as Markdown`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    const { resources } = await client.listResources();
    t.true(resources.some(({ uri }) => uri === "linkgate://docs/operate/deploy"));
    for (const { uri, name, title, description, mimeType } of resources) {
      t.true(uri.startsWith("linkgate://docs/"), uri);
      t.truthy(title && description, uri);
      t.is(mimeType, "text/markdown");
      const { text } = textOf(await client.readResource({ uri }));
      t.is(text, await (await fetch(`${service.url}${name}.md`)).text(), uri);
    }
  });

  test(`${era}: links are a template, and are not listed`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    const { resourceTemplates } = await client.listResourceTemplates();
    const types = resourceTemplates.map(({ uriTemplate, mimeType }) => [uriTemplate, mimeType]);
    t.deepEqual(types, [
      ["linkgate://docs/{+path}", "text/markdown"],
      ["linkgate://links/{+slug}", "application/json"],
    ]);
    t.true(resourceTemplates.every(({ title, description }) => title && description));
  });

  test(`${era}: what is no link of the organization and no page is a resource that isn't found`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    for (const uri of [...NO_SLUGS.map(uriOf), ...NO_PAGES]) {
      const error = await t.throwsAsync<ResourceNotFoundError>(
        client.readResource({ uri }),
        { instanceOf: ResourceNotFoundError },
        uri,
      );
      t.is(error?.code, -32602);
      t.deepEqual(Object.keys(error?.data as object), ["uri"]);
    }
  });

  test(`${era}: a token without links:read has no template of links, but reads the documentation`, async (t) => {
    const client = await connectUntilEnd(t, url, webhooksToken, era);
    const { resourceTemplates } = await client.listResourceTemplates();
    const names = resourceTemplates.map(({ name }) => name);
    t.deepEqual(names, ["documentation"]);
    const { text } = textOf(await client.readResource({ uri: "linkgate://docs/mcp" }));
    t.regex(text, /^# /);
  });

  test(`${era}: reading a link without links:read is a 403 that names the scope`, async (t) => {
    for (const uri of [uriOf("Spring-Sale"), uriOf("unknown"), "LINKGATE://links/Spring-Sale"]) {
      const modern = modernRequest("resources/read", { uri });
      const legacy = { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri } };
      const [message, headers] = era === "2026-07-28" ? [modern.message, modern.headers] : [legacy, {}];
      const reply = await postMcp(url, message, { ...headers, ...bearer(webhooksToken) });
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: "webhooks:write links:read" });
    }
  });
}

test("a link is never cached, and a page may be cached by anyone for an hour", async (t) => {
  for (const [uri, hint] of [
    [uriOf("Spring-Sale"), { ttlMs: 0, cacheScope: "private" }],
    ["linkgate://docs/mcp", { ttlMs: 60 * 60 * 1000, cacheScope: "public" }],
  ] as const) {
    const { message, headers } = modernRequest("resources/read", { uri });
    const { rpc } = await postMcp(url, message, { ...headers, ...bearer(token) });
    t.like(rpc?.result, hint);
  }
});
