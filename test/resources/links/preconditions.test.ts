import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

/** Creates and updates a link; returns its previous and its current entity tag. */
async function createUpdatedLink() {
  const { id, slug } = await api.createLink();
  const path = `/v1/links/${id}`;
  const old = tagOf(await api.get(path));
  const reply = await api.send("PATCH", path, { json: { title: "changed" } });
  return { path, slug, old, current: tagOf(reply) };
}

function tagOf({ headers }: { headers: Headers }): string {
  return headers.get("etag") ?? "";
}

test("every update changes the strong ETag, which reads return", async (t) => {
  const { path, old, current } = await createUpdatedLink();
  t.regex(current, /^"[^"]+"$/);
  t.not(current, old);
  t.is(tagOf(await api.get(path)), current);
  t.is(tagOf(await api.send("HEAD", path)), current);
});

test("a click does not change the ETag", async (t) => {
  const { path, slug, current } = await createUpdatedLink();
  await apiAt(service.url).get(`/${slug}`);
  const reply = await api.get(path);
  t.is(reply.body.clicks, 1);
  t.is(tagOf(reply), current);
});

const failing: [name: string, value: (tags: { old: string; current: string }) => string][] = [
  ["the tag of an earlier version", ({ old }) => old],
  ["an unknown tag", () => '"nothing"'],
  ["the current tag without quotes", ({ current }) => current.replaceAll('"', "")],
  ["the current tag as a weak tag", ({ current }) => `W/${current}`],
  ["several outdated and unknown tags", ({ old }) => `${old}, "x", "y"`],
  ["a quoted star", () => '"*"'],
];
for (const [name, value] of failing) {
  test(`If-Match with ${name} fails and changes nothing`, async (t) => {
    const { path, ...tags } = await createUpdatedLink();
    const before = await api.get(path);
    for (const [method, json] of [
      ["PATCH", { title: "lost" }],
      ["DELETE", undefined],
    ] as const) {
      const reply = await api.send(method, path, { json, headers: { "if-match": value(tags) } });
      isProblem(t, reply, { status: 412, code: "precondition_failed" });
    }
    t.deepEqual((await api.get(path)).body, before.body);
  });
}

const holding: [name: string, value: (current: string) => string][] = [
  ["the current tag", (current) => current],
  ["a star", () => "*"],
  ["a list with the current tag", (current) => `"x",${current} , "y"`],
];
for (const [name, value] of holding) {
  test(`If-Match with ${name} allows an update and a deletion`, async (t) => {
    const { path, current } = await createUpdatedLink();
    const headers = { "if-match": value(current) };
    const reply = await api.send("PATCH", path, { json: { title: "again" }, headers });
    t.is(reply.status, 200);
    const deletion = { "if-match": value(tagOf(reply)) };
    t.is((await api.send("DELETE", path, { headers: deletion })).status, 204);
    isMissing(t, await api.get(path));
  });
}

test("concurrent updates of the same version succeed exactly once", async (t) => {
  const { path, current } = await createUpdatedLink();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      api.send("PATCH", path, { json: { title: `change ${n}` }, headers: { "if-match": current } }),
    ),
  );
  t.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(19).fill(412)]);
  const winner = replies.findIndex(({ status }) => status === 200);
  t.is((await api.get(path)).body.title, `change ${winner}`);
});

test("concurrent updates without If-Match all succeed, each on its own field", async (t) => {
  const { path } = await createUpdatedLink();
  const fields = [
    { title: "t" },
    { tags: ["t"] },
    { external_id: "t" },
    { max_clicks: 3 },
    { metadata: { t: 1 } },
  ];
  const replies = await Promise.all(fields.map((json) => api.send("PATCH", path, { json })));
  t.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  const { title, tags, external_id, max_clicks, metadata } = (await api.get(path)).body;
  t.deepEqual({ title, tags, external_id, max_clicks, metadata }, Object.assign({}, ...fields));
});

const matching: [name: string, value: (current: string) => string][] = [
  ["the current tag", (current) => current],
  ["the current tag as a weak tag", (current) => `W/${current}`],
  ["a star", () => "*"],
  ["a list with the current tag", (current) => `"x", ${current}`],
];
for (const [name, value] of matching) {
  test(`If-None-Match with ${name} returns 304 without a body`, async (t) => {
    const { path, current } = await createUpdatedLink();
    for (const method of ["GET", "HEAD"]) {
      const reply = await api.send(method, path, { headers: { "if-none-match": value(current) } });
      t.is(reply.status, 304);
      t.is(reply.text, "");
      t.is(tagOf(reply), current);
    }
  });
}

test("If-None-Match with the tag of an earlier version returns the link", async (t) => {
  const { path, old } = await createUpdatedLink();
  const reply = await api.get(path, { "if-none-match": old });
  t.is(reply.status, 200);
  t.is(reply.body.title, "changed");
});

test("preconditions reveal nothing about links of other organizations", async (t) => {
  const { path, current } = await createUpdatedLink();
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  for (const target of [path, "/v1/links/lnk_unknown"]) {
    for (const tag of [current, "*", '"x"']) {
      isMissing(t, await other.send("PATCH", target, { json: {}, headers: { "if-match": tag } }));
      isMissing(t, await other.send("DELETE", target, { headers: { "if-match": tag } }));
      isMissing(t, await other.get(target, { "if-none-match": tag }));
    }
  }
});
