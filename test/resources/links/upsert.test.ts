import test from "ava";
import { apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

const url = "https://example.com/";
const pathOf = (externalId: string) => `/v1/links/by-external-id/${encodeURIComponent(externalId)}`;
const put = (externalId: string, json: unknown, headers: Record<string, string> = {}) =>
  api.send<LinkBody>("PUT", pathOf(externalId), { json, headers });
const tagOf = ({ headers }: { headers: Headers }) => headers.get("etag") as string;

test("the first PUT creates the link, and the next one replaces its fields", async (t) => {
  const first = await put("order-1", { url, title: "One", tags: ["a"], slug: "order-1" });
  t.is(first.status, 201);
  t.is(first.headers.get("location"), `/v1/links/${first.body.id}`);
  t.like(first.body, { external_id: "order-1", title: "One", tags: ["a"], slug: "order-1" });
  const second = await put("order-1", { url: "https://example.org/", max_clicks: 3 });
  t.is(second.status, 200);
  t.not(tagOf(second), tagOf(first));
  const { id, slug, created_at, created_by } = first.body;
  const kept = { id, slug, created_at, created_by, external_id: "order-1" };
  t.like(second.body, { ...kept, url: "https://example.org/", title: null, tags: [], max_clicks: 3 });
  t.deepEqual((await api.get(`/v1/links/${id}`)).body, second.body);
  t.is((await put("order-1", { url, slug: "order-one" })).body.slug, "order-one");
});

test("a repeated PUT changes nothing, not even the ETag", async (t) => {
  const json = { url, title: "Same", metadata: { a: 1 }, external_id: "same" };
  const [first, second] = [await put("same", json), await put("same", json)];
  t.deepEqual([first.status, second.status], [201, 200]);
  t.deepEqual(second.body, first.body);
  t.is(tagOf(second), tagOf(first));
});

test("a PUT keeps an archived link archived", async (t) => {
  const { body } = await put("archived", { url });
  await api.send("PATCH", `/v1/links/${body.id}`, { json: { archived: true } });
  t.true((await put("archived", { url: "https://example.org/" })).body.archived);
});

for (const externalId of ["a/b", "a b", "ä", "🎉", "%", "100%25", "?", "#x", "a+b", "x".repeat(255)]) {
  test(`the external ID ${externalId.slice(0, 10)} is decoded from the path`, async (t) => {
    const { status, body } = await put(externalId, { url });
    t.is(status, 201);
    t.is(body.external_id, externalId);
    t.is((await put(externalId, { url, external_id: externalId })).body.id, body.id);
  });
}

test("an invalid external ID in the path is rejected", async (t) => {
  const invalid = { status: 422, code: "invalid_external_id", fields: ["external_id"] };
  for (const segment of ["%zz", "%ff", "%00", "%0a", "x".repeat(256)]) {
    const reply = await api.send("PUT", `/v1/links/by-external-id/${segment}`, { json: { url } });
    isProblem(t, reply, invalid);
  }
  isProblem(t, await put("one", { url, external_id: "other" }), invalid);
  isProblem(t, await put("one", { url, external_id: null }), invalid);
});

test("a PUT is validated like a new link, and an invalid one creates nothing", async (t) => {
  await api.createLink({ slug: "occupied" });
  const invalid: [json: unknown, status: number, code: string, field: string][] = [
    [{}, 422, "invalid_url", "url"],
    [{ url: "ftp://example.com/" }, 422, "invalid_url", "url"],
    [{ url, archived: true }, 422, "unknown_field", "archived"],
    [{ url, id: "lnk_x" }, 422, "unknown_field", "id"],
    [{ url, slug: "occupied" }, 409, "slug_taken", "slug"],
  ];
  for (const [json, status, code, field] of invalid) {
    isProblem(t, await put("invalid", json), { status, code, fields: [field] });
  }
  t.is((await put("invalid", { url })).status, 201);
  isProblem(t, await put("invalid", { url, slug: "occupied" }), {
    status: 409,
    code: "slug_taken",
    fields: ["slug"],
  });
});

test("If-Match is honored, and always fails for a link that doesn't exist", async (t) => {
  const failed = { status: 412, code: "precondition_failed" };
  for (const tag of ["*", '"1"']) isProblem(t, await put("matched", { url }, { "if-match": tag }), failed);
  const first = await put("matched", { url });
  const second = await put("matched", { url, title: "2" }, { "if-match": tagOf(first) });
  t.is(second.status, 200);
  isProblem(t, await put("matched", { url, title: "3" }, { "if-match": tagOf(first) }), failed);
  t.is((await put("matched", { url, title: "4" }, { "if-match": "*" })).body.title, "4");
});

test("a PUT with the external ID of a deleted link creates a new link", async (t) => {
  const { body } = await put("deleted", { url });
  await api.send("DELETE", `/v1/links/${body.id}`);
  const reply = await put("deleted", { url });
  t.is(reply.status, 201);
  t.not(reply.body.id, body.id);
});

test("organizations have separate links for the same external ID", async (t) => {
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  const mine = await put("shared", { url });
  const theirs = await other.send<LinkBody>("PUT", pathOf("shared"), { json: { url, title: "theirs" } });
  t.deepEqual([mine.status, theirs.status], [201, 201]);
  t.is((await api.get(`/v1/links/${mine.body.id}`)).body.title, null);
});

test("concurrent PUTs with different fields create one link", async (t) => {
  for (let round = 0; round < 3; round++) {
    const replies = await atOnce(50, (n) =>
      put(`race-${round}`, { url, title: `Title ${n}`, tags: [`tag-${n}`] }),
    );
    t.deepEqual(replies.map(({ status }) => status).sort(), [...Array(49).fill(200), 201]);
    t.is(new Set(replies.map(({ body }) => body.id)).size, 1);
    const { body } = await api.get<LinkBody>(`/v1/links/${replies[0]?.body.id}`);
    t.deepEqual(body.tags, [`tag-${body.title?.split(" ")[1]}`], "all fields come from the same PUT");
  }
});

test("concurrent PUTs with the same slug create one link", async (t) => {
  for (let round = 0; round < 3; round++) {
    const slug = `wanted-${round}`;
    const replies = await atOnce(50, (n) => put(slug, { url, slug, title: `Title ${n}` }));
    t.deepEqual(replies.map(({ status }) => status).sort(), [...Array(49).fill(200), 201]);
    t.deepEqual(new Set(replies.map(({ body }) => `${body.id} ${body.slug}`)).size, 1);
  }
});

test("PUTs succeed while the link is repeatedly deleted", async (t) => {
  const deleteRepeatedly = async () => {
    for (let n = 0; n < 10; n++) {
      const { body } = await api.get<PageBody>("/v1/links?tag=contended");
      for (const { id } of body.data) await api.send("DELETE", `/v1/links/${id}`);
    }
  };
  const [replies] = await Promise.all([
    atOnce(20, (n) => put("contended", { url, tags: ["contended"], title: `${n}` })),
    deleteRepeatedly(),
  ]);
  for (const { status, text } of replies) t.true(status === 200 || status === 201, text);
});
