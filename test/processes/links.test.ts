import test from "ava";
import { apiAt, type LinkBody, type PageBody } from "../harness/api.ts";
import { startCluster } from "../harness/cluster.ts";
import { connectMcp, refusalOf } from "../harness/mcp.ts";
import { atOnce } from "../harness/storage.ts";

const cluster = await startCluster();
const app = await cluster.createOrganization();
const token = await cluster.token(app);
const api = apiAt(cluster.url, token);
const apis = cluster.resources.map(({ url }) => apiAt(url, token));
const turn = (index: number) => apis[index % 2] as typeof api;
test.after.always(() => cluster.close());

const countsOf = (statuses: number[]) =>
  Object.fromEntries(
    [...new Set(statuses)].sort().map((one) => [one, statuses.filter((s) => s === one).length]),
  );

/** Follows a link so many times at once, at both servers in turn. */
const follow = async (slug: string, times: number) =>
  countsOf((await atOnce(times, (index) => turn(index).get(`/${slug}`))).map(({ status }) => status));

test.serial("of 20 creations of one slug at once over both servers one succeeds", async (t) => {
  for (let round = 0; round < 10; round++) {
    const json = { url: "https://example.com/", slug: `one-slug-${round}` };
    const answers = await atOnce(20, (index) => turn(index).send("POST", "/v1/links", { json }));
    t.deepEqual(countsOf(answers.map(({ status }) => status)), { 201: 1, 409: 19 });
    for (const { status, body } of answers) if (status === 409) t.is(body.code, "slug_taken");
  }
});

test.serial(
  "what one server makes, changes and deletes, the other one shows at its next request",
  async (t) => {
    for (let round = 0; round < 20; round++) {
      const [here, there] = [turn(round), turn(round + 1)];
      const link = await here.createLink({ title: "made" });
      t.is((await there.get(`/v1/links/${link.id}`)).body.title, "made");
      t.is((await there.get(`/${link.slug}`)).status, 302);
      await there.send("PATCH", `/v1/links/${link.id}`, { json: { archived: true } });
      t.is((await here.get(`/${link.slug}`)).status, 410);
      t.is((await here.send("DELETE", `/v1/links/${link.id}`)).status, 204);
      t.is((await there.get(`/v1/links/${link.id}`)).status, 404);
    }
  },
);

test.serial("of 10 changes of one version at once over both servers one succeeds", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { id } = await api.createLink();
    const etag = (await turn(round).get(`/v1/links/${id}`)).headers.get("etag") as string;
    const answers = await atOnce(10, (index) =>
      turn(index).send("PATCH", `/v1/links/${id}`, {
        json: { title: `title ${index}` },
        headers: { "if-match": etag },
      }),
    );
    t.deepEqual(countsOf(answers.map(({ status }) => status)), { 200: 1, 412: 9 });
  }
});

test.serial(
  "of 200 clicks at once on max_clicks 100 over both servers exactly 100 are redirected",
  async (t) => {
    for (let round = 0; round < 3; round++) {
      const link = await api.createLink({ max_clicks: 100 });
      t.deepEqual(await follow(link.slug, 200), { 302: 100, 410: 100 });
      for (const each of apis) t.is((await each.get(`/v1/links/${link.id}`)).body.clicks, 100);
    }
  },
);

test.serial("of 40 clicks at once on max_clicks 1 over both servers exactly one is redirected", async (t) => {
  for (let round = 0; round < 5; round++) {
    const link = await api.createLink({ max_clicks: 1 });
    t.deepEqual(await follow(link.slug, 40), { 302: 1, 410: 39 });
  }
});

test.serial("50 POSTs at once with one Idempotency-Key over both servers make one link", async (t) => {
  for (let round = 0; round < 5; round++) {
    const tag = `one-key-${round}`;
    const request = {
      json: { url: "https://example.com/", tags: [tag] },
      headers: { "idempotency-key": tag },
    };
    const answers = await atOnce(50, (index) => turn(index).send<LinkBody>("POST", "/v1/links", request));
    t.deepEqual(
      answers.filter(({ status }) => status !== 201 && status !== 409),
      [],
    );
    const made = answers.filter(({ status }) => status === 201).map(({ body }) => body.id);
    t.is(new Set(made).size, 1);
    t.is((await api.get<PageBody>(`/v1/links?tag=${tag}`)).body.data.length, 1);
    for (const each of apis) {
      const again = await each.send<LinkBody>("POST", "/v1/links", request);
      t.is(again.body.id, made[0] as string);
      t.is(again.headers.get("idempotency-replayed"), "true");
    }
  }
});

test.serial("an agent's tools work while every request meets the other server", async (t) => {
  const agent = await connectMcp(`${cluster.url}/mcp`, token);
  t.teardown(() => agent.close());
  for (let round = 0; round < 5; round++) {
    const call = (name: string, args: Record<string, unknown>) => agent.callTool({ name, arguments: args });
    const made = await call("create_link", { url: "https://example.com/", slug: `agent-${round}` });
    const { id } = made.structuredContent as { id: string };
    t.is((await turn(round).get(`/v1/links/${id}`)).body.slug, `agent-${round}`);
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

// The last one: it stops the servers.
test.serial("200 clicks at once over both servers are all counted after a clean stop", async (t) => {
  const link = await api.createLink();
  t.deepEqual(await follow(link.slug, 200), { 302: 200 });
  const endings = await cluster.stop();
  t.deepEqual(
    endings.map(({ code, stderr }) => ({ code, stderr })),
    Array(4).fill({ code: 0, stderr: "" }),
  );
  t.is((await cluster.storage.links.find(app.id, link.id))?.clicks, 200);
});
