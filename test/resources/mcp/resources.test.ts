import { ResourceNotFoundError } from "@modelcontextprotocol/client";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { ALL_ERAS, connectMcp, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const url = `${service.url}/mcp`;
const [app, other] = [await service.createOrganization(), await service.createOrganization()];
const token = await service.token(app);
const webhooksToken = await service.token(app, { scope: "webhooks:write" });
const api = apiAt(service.url, token);
const link = await api.createLink({ slug: "Spring-Sale", metadata: { a: 1 }, tags: ["mail"] });
const deleted = await api.createLink({ slug: "deleted" });
await api.send("DELETE", `/v1/links/${deleted.id}`);
const stranger = apiAt(service.url, await service.token(other));
await stranger.createLink({ slug: "foreign" });
test.after.always(() => service.close());

const uriOf = (slug: string) => `linkgate://links/${slug}`;
const textOf = ({ contents: [content] }: { contents: object[] }) =>
  content as { uri: string; mimeType: string; text: string };

for (const era of ALL_ERAS) {
  test(`${era}: a link is read by its slug, as get_link returns it`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { uri, mimeType, text } = textOf(await client.readResource({ uri: uriOf("Spring-Sale") }));
    t.deepEqual([uri, mimeType], [uriOf("Spring-Sale"), "application/json"]);
    t.deepEqual(JSON.parse(text), (await api.get(`/v1/links/${link.id}`)).body);
    await client.close();
  });

  test(`${era}: a disabled and an archived link are read, as over REST`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { id } = await api.createLink({ slug: `off-${era}` });
    await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true } });
    await service.storage.disabledLinks.disable(id, "phishing", OPERATOR);
    const { text } = textOf(await client.readResource({ uri: uriOf(`off-${era}`) }));
    t.like(JSON.parse(text), { archived: true, disabled_reason: "phishing" });
    await client.close();
  });

  test(`${era}: each page of the documentation is listed with a title, and is read as Markdown`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { resources } = await client.listResources();
    t.true(resources.some(({ uri }) => uri === "linkgate://docs/operate/deploy"));
    for (const { uri, name, title, description, mimeType } of resources) {
      t.truthy(title && description, uri);
      t.is(mimeType, "text/markdown");
      const { text } = textOf(await client.readResource({ uri }));
      t.is(text, await (await fetch(`${service.url}${name}.md`)).text(), uri);
    }
    await client.close();
  });

  test(`${era}: links are a template, and are not listed`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { resourceTemplates } = await client.listResourceTemplates();
    t.deepEqual(
      resourceTemplates.map(({ uriTemplate, mimeType }) => [uriTemplate, mimeType]),
      [
        ["linkgate://docs/{+path}", "text/markdown"],
        ["linkgate://links/{slug}", "application/json"],
      ],
    );
    t.true(resourceTemplates.every(({ title, description }) => title && description));
    const { resources } = await client.listResources();
    t.deepEqual(
      resources.filter(({ uri }) => !uri.startsWith("linkgate://docs/")),
      [],
    );
    await client.close();
  });

  for (const [what, uri] of [
    ["an unknown slug", uriOf("unknown")],
    ["a slug of another organization", uriOf("foreign")],
    ["the slug of a deleted link", uriOf("deleted")],
    ["a slug in another case", uriOf("spring-sale")],
    ["no slug", uriOf("")],
    ["a slug with a query", uriOf("Spring-Sale?x")],
    ["a slug with a fragment", uriOf("Spring-Sale#x")],
    ["a slug with more segments", uriOf("Spring-Sale/x")],
    ["an encoded slug", uriOf("Spring%2DSale")],
    ["a malformed escape", uriOf("%zz")],
    ["a slug with a zero byte", uriOf("%00")],
    ["a long slug", uriOf("x".repeat(5000))],
    ["an unknown page", "linkgate://docs/unknown"],
    ["the list of pages", "linkgate://docs/README"],
    ["the file of a page", "linkgate://docs/mcp.md"],
    ["a file that isn't a page", "linkgate://docs/verify-audit-log.mjs"],
    ["a file outside the documentation", "linkgate://docs/../README"],
    ["an encoded path outside the documentation", "linkgate://docs/..%2fREADME"],
    ["an absolute path", "linkgate://docs//etc/passwd"],
    ["an unknown kind", "linkgate://webhooks/x"],
    ["another scheme", "file:///etc/passwd"],
  ] as const) {
    test(`${era}: ${what} is a resource that isn't found`, async (t) => {
      const client = await connectMcp(url, token, era);
      const error = await t.throwsAsync(client.readResource({ uri }), { instanceOf: ResourceNotFoundError });
      t.is((error as ResourceNotFoundError).code, -32602);
      t.deepEqual(Object.keys(error?.data as object), ["uri"]);
      await client.close();
    });
  }

  test(`${era}: text that isn't a URI is invalid`, async (t) => {
    const client = await connectMcp(url, token, era);
    for (const uri of ["", "Spring-Sale", "linkgate:"]) {
      const error = await t.throwsAsync(client.readResource({ uri }));
      t.is((error as { code?: number } | undefined)?.code, -32602, uri);
    }
    await client.close();
  });

  test(`${era}: a token without links:read has no template of links, but reads the documentation`, async (t) => {
    const client = await connectMcp(url, webhooksToken, era);
    const { resourceTemplates } = await client.listResourceTemplates();
    t.deepEqual(
      resourceTemplates.map(({ name }) => name),
      ["documentation"],
    );
    const { text } = textOf(await client.readResource({ uri: "linkgate://docs/mcp" }));
    t.regex(text, /^# /);
    await client.close();
  });

  for (const uri of [uriOf("Spring-Sale"), uriOf("unknown"), "LINKGATE://links/Spring-Sale"]) {
    test(`${era}: reading ${uri} without links:read is a 403 that names the scope`, async (t) => {
      const modern = modernRequest("resources/read", { uri });
      const legacy = { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri } };
      const [message, headers] = era === "2026-07-28" ? [modern.message, modern.headers] : [legacy, {}];
      const reply = await postMcp(url, message, { ...headers, ...bearer(webhooksToken) });
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: "webhooks:write links:read" });
    });
  }
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

test("a read whose header names another resource is rejected", async (t) => {
  const { message, headers } = modernRequest("resources/read", { uri: uriOf("Spring-Sale") });
  const wrong = { ...headers, "mcp-name": uriOf("other") };
  const { status, rpc } = await postMcp(url, message, { ...wrong, ...bearer(token) });
  t.is(status, 400);
  t.is(rpc?.error?.code, -32020);
});
