import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

/** A link that was changed once, with the tag from before and the one of now. */
async function changedLink() {
  const { id, slug } = await api.createLink();
  const path = `/v1/links/${id}`;
  const old = tagOf(await api.get(path));
  const reply = await api.send("PATCH", path, { json: { title: "changed" } });
  return { path, slug, old, current: tagOf(reply) };
}

function tagOf({ headers }: { headers: Headers }): string {
  return headers.get("etag") ?? "";
}

test("every change gives another strong ETag, and reading gives the same one", async (t) => {
  const { path, old, current } = await changedLink();
  t.regex(current, /^"[^"]+"$/);
  t.not(current, old);
  t.is(tagOf(await api.get(path)), current);
  t.is(tagOf(await api.send("HEAD", path)), current);
});

test("a click does not change the ETag", async (t) => {
  const { path, slug, current } = await changedLink();
  await fetch(`${service.url}/${slug}`, { redirect: "manual" });
  const reply = await api.get(path);
  t.is(reply.body.clicks, 1);
  t.is(tagOf(reply), current);
});

const failing: [name: string, value: (tags: { old: string; current: string }) => string][] = [
  ["the tag of an earlier version", ({ old }) => old],
  ["a tag of nobody", () => '"nothing"'],
  ["the tag without quotes", ({ current }) => current.replaceAll('"', "")],
  ["the tag as a weak one", ({ current }) => `W/${current}`],
  ["several wrong tags", ({ old }) => `${old}, "x", "y"`],
  ["a quoted star", () => '"*"'],
];
for (const [name, value] of failing) {
  test(`If-Match with ${name} is 412 and changes nothing`, async (t) => {
    const { path, ...tags } = await changedLink();
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
  ["the tag of now", (current) => current],
  ["a star", () => "*"],
  ["a list that has it", (current) => `"x",${current} , "y"`],
];
for (const [name, value] of holding) {
  test(`If-Match with ${name} lets a change and a delete through`, async (t) => {
    const { path, current } = await changedLink();
    const headers = { "if-match": value(current) };
    const reply = await api.send("PATCH", path, { json: { title: "again" }, headers });
    t.is(reply.status, 200);
    const removal = { "if-match": value(tagOf(reply)) };
    t.is((await api.send("DELETE", path, { headers: removal })).status, 204);
    isMissing(t, await api.get(path));
  });
}

test("of 20 changes that start from the same version exactly one is made", async (t) => {
  const { path, current } = await changedLink();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      api.send("PATCH", path, { json: { title: `change ${n}` }, headers: { "if-match": current } }),
    ),
  );
  t.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(19).fill(412)]);
  const made = replies.findIndex(({ status }) => status === 200);
  t.is((await api.get(path)).body.title, `change ${made}`);
});

test("five changes at once without If-Match are all made, each to its own field", async (t) => {
  const { path } = await changedLink();
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
  ["the tag of now", (current) => current],
  ["the tag as a weak one", (current) => `W/${current}`],
  ["a star", () => "*"],
  ["a list that has it", (current) => `"x", ${current}`],
];
for (const [name, value] of matching) {
  test(`If-None-Match with ${name} is 304 without a body`, async (t) => {
    const { path, current } = await changedLink();
    for (const method of ["GET", "HEAD"]) {
      const reply = await api.send(method, path, { headers: { "if-none-match": value(current) } });
      t.is(reply.status, 304);
      t.is(reply.text, "");
      t.is(tagOf(reply), current);
    }
  });
}

test("If-None-Match with the tag of an earlier version gives the link", async (t) => {
  const { path, old } = await changedLink();
  const reply = await api.get(path, { "if-none-match": old });
  t.is(reply.status, 200);
  t.is(reply.body.title, "changed");
});

test("preconditions reveal nothing about links of others and of nobody", async (t) => {
  const { path, current } = await changedLink();
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  for (const address of [path, "/v1/links/lnk_unknown"]) {
    for (const tag of [current, "*", '"x"']) {
      isMissing(t, await other.send("PATCH", address, { json: {}, headers: { "if-match": tag } }));
      isMissing(t, await other.send("DELETE", address, { headers: { "if-match": tag } }));
      isMissing(t, await other.get(address, { "if-none-match": tag }));
    }
  }
});
