import test from "ava";
import { apiAt, type LinkBody, type PageBody } from "../harness/clients/api.ts";
import { connectMcp, refusalOf } from "../harness/clients/mcp.ts";
import { startCluster } from "../harness/cluster.ts";
import { atOnce } from "../harness/database/storage.ts";

export const databases = "all";

const cluster = await startCluster();
const app = await cluster.createOrganization();
const token = await cluster.token(app);
const api = apiAt(cluster.url, token);
const apis = cluster.resources.map(({ url }) => apiAt(url, token));
const apiFor = (index: number) => apis[index % 2] as typeof api;
test.after.always(() => cluster.close());

const countsOf = (statuses: number[]) =>
  Object.fromEntries(
    [...new Set(statuses)]
      .sort()
      .map((status) => [status, statuses.filter((other) => other === status).length]),
  );

/** Follows a link concurrently, alternating between both servers, and counts the responses by status. */
const follow = async (slug: string, times: number) =>
  countsOf((await atOnce(times, (index) => apiFor(index).get(`/${slug}`))).map(({ status }) => status));

test.serial("concurrent requests for one slug on both servers succeed exactly once", async (t) => {
  for (let round = 0; round < 10; round++) {
    const json = { url: "https://example.com/", slug: `one-slug-${round}` };
    const replies = await atOnce(20, (index) => apiFor(index).send("POST", "/v1/links", { json }));
    t.deepEqual(countsOf(replies.map(({ status }) => status)), { 201: 1, 409: 19 });
    for (const { status, body } of replies) if (status === 409) t.is(body.code, "slug_taken");
  }
});

test.serial("a change made on one server is visible on the other at the next request", async (t) => {
  for (let round = 0; round < 20; round++) {
    const [one, other] = [apiFor(round), apiFor(round + 1)];
    const link = await one.createLink({ title: "made" });
    t.is((await other.get(`/v1/links/${link.id}`)).body.title, "made");
    t.is((await other.get(`/${link.slug}`)).status, 302);
    await other.send("PATCH", `/v1/links/${link.id}`, { json: { archived: true } });
    t.is((await one.get(`/${link.slug}`)).status, 410);
    t.is((await one.send("DELETE", `/v1/links/${link.id}`)).status, 204);
    t.is((await other.get(`/v1/links/${link.id}`)).status, 404);
  }
});

test.serial("concurrent updates of one version on both servers succeed exactly once", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { id } = await api.createLink();
    const etag = (await apiFor(round).get(`/v1/links/${id}`)).headers.get("etag") as string;
    const replies = await atOnce(10, (index) =>
      apiFor(index).send("PATCH", `/v1/links/${id}`, {
        json: { title: `title ${index}` },
        headers: { "if-match": etag },
      }),
    );
    t.deepEqual(countsOf(replies.map(({ status }) => status)), { 200: 1, 412: 9 });
  }
});

test.serial("concurrent clicks on both servers never exceed max_clicks", async (t) => {
  for (let round = 0; round < 3; round++) {
    const link = await api.createLink({ max_clicks: 100 });
    t.deepEqual(await follow(link.slug, 200), { 302: 100, 410: 100 });
    for (const each of apis) t.is((await each.get(`/v1/links/${link.id}`)).body.clicks, 100);
  }
});

test.serial(
  "a single-use link redirects exactly one of many concurrent clicks on both servers",
  async (t) => {
    for (let round = 0; round < 5; round++) {
      const link = await api.createLink({ max_clicks: 1 });
      t.deepEqual(await follow(link.slug, 40), { 302: 1, 410: 39 });
    }
  },
);

test.serial("concurrent POSTs with one Idempotency-Key on both servers create one link", async (t) => {
  for (let round = 0; round < 5; round++) {
    const tag = `one-key-${round}`;
    const request = {
      json: { url: "https://example.com/", tags: [tag] },
      headers: { "idempotency-key": tag },
    };
    const replies = await atOnce(50, (index) => apiFor(index).send<LinkBody>("POST", "/v1/links", request));
    t.deepEqual(
      replies.filter(({ status }) => status !== 201 && status !== 409),
      [],
    );
    const created = replies.filter(({ status }) => status === 201).map(({ body }) => body.id);
    t.is(new Set(created).size, 1);
    t.is((await api.get<PageBody>(`/v1/links?tag=${tag}`)).body.data.length, 1);
    for (const each of apis) {
      const retry = await each.send<LinkBody>("POST", "/v1/links", request);
      t.is(retry.body.id, created[0] as string);
      t.is(retry.headers.get("idempotency-replayed"), "true");
    }
  }
});

test.serial("an agent's tools work when requests alternate between servers", async (t) => {
  const agent = await connectMcp(`${cluster.url}/mcp`, token);
  t.teardown(() => agent.close());
  for (let round = 0; round < 5; round++) {
    const call = (name: string, args: Record<string, unknown>) => agent.callTool({ name, arguments: args });
    const created = await call("create_link", { url: "https://example.com/", slug: `agent-${round}` });
    const { id } = created.structuredContent as { id: string };
    t.is((await apiFor(round).get(`/v1/links/${id}`)).body.slug, `agent-${round}`);
    t.like((await call("get_link", { id })).structuredContent, { id });
    t.falsy((await call("delete_link", { id })).isError);
    t.is(refusalOf(await call("get_link", { id }))?.code, "not_found");
  }
  const names = (await agent.listTools()).tools.map(({ name }) => name);
  for (const { url } of cluster.resources) {
    const pinned = await connectMcp(`${url}/mcp`, token, "2025-11-25");
    t.deepEqual(
      (await pinned.listTools()).tools.map(({ name }) => name),
      names,
    );
    await pinned.close();
  }
});

// Must be the last test, because it stops the servers.
test.serial("concurrent clicks on both servers are all counted after a graceful shutdown", async (t) => {
  const link = await api.createLink();
  t.deepEqual(await follow(link.slug, 200), { 302: 200 });
  const exits = await cluster.stop();
  t.deepEqual(
    exits.map(({ code, stderr }) => ({ code, stderr })),
    Array(4).fill({ code: 0, stderr: "" }),
  );
  t.is((await cluster.storage.links.find(app.id, link.id))?.clicks, 200);
});
