import test from "ava";
import { isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { atOnce } from "../../harness/database/storage.ts";

export const databases = "all";

const { api } = await shareApi();

const url = "https://example.com/";
const pathOf = (externalId: string) => `/v1/links/by-external-id/${encodeURIComponent(externalId)}`;
const put = (externalId: string, json: unknown) => api.send<LinkBody>("PUT", pathOf(externalId), { json });
const tagOf = ({ headers }: { headers: Headers }) => headers.get("etag") as string;

test("the first PUT creates the link, the next one replaces its fields, and a repeated one changes nothing", async (t) => {
  const fields = { url, title: "One", tags: ["a"], slug: "order-1", fallback_url: url };
  const first = await put("order-1", fields);
  t.is(first.status, 201);
  t.is(first.headers.get("location"), `/v1/links/${first.body.id}`);
  t.like(first.body, { external_id: "order-1", ...fields });
  const { id, slug, created_at, created_by } = first.body;
  await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true } });
  const json = { url: "https://example.org/", max_clicks: 3 };
  const second = await put("order-1", json);
  t.is(second.status, 200);
  t.not(tagOf(second), tagOf(first));
  const kept = { id, slug, created_at, created_by, external_id: "order-1", archived: true };
  t.like(second.body, { ...kept, ...json, title: null, tags: [], fallback_url: null });
  for (const again of [await api.get(`/v1/links/${id}`), await put("order-1", json)])
    t.deepEqual([again.body, tagOf(again)], [second.body, tagOf(second)]);
  t.is((await put("order-1", { url, slug: "order-one" })).body.slug, "order-one");
});

test("the external ID is decoded from the path", async (t) => {
  for (const externalId of ["a/b", "a b", "ä", "🎉", "%", "100%25", "?", "#x", "a+b", "analytics"]) {
    const { status, body } = await put(externalId, { url });
    t.is(status, 201);
    t.is(body.external_id, externalId);
    t.is((await put(externalId, { url, external_id: externalId })).body.id, body.id);
    t.deepEqual((await api.get(pathOf(externalId))).body, body);
  }
});

test("an external ID that is invalid, or another one than in the body, is refused", async (t) => {
  const invalid = { status: 422, code: "invalid_external_id", fields: ["external_id"] };
  for (const segment of ["%zz", "%ff", "%00", "x".repeat(256)])
    isProblem(t, await api.send("PUT", `/v1/links/by-external-id/${segment}`, { json: { url } }), invalid);
  isProblem(t, await put("one", { url, external_id: "other" }), invalid);
});

test("concurrent PUTs create one link, which has all fields of one of them", async (t) => {
  for (const slug of [undefined, "wanted"]) {
    const externalId = `race-${slug}`;
    const replies = await atOnce(50, (n) =>
      put(externalId, { url, slug, title: `Title ${n}`, tags: [`tag-${n}`] }),
    );
    t.deepEqual(replies.map(({ status }) => status).sort(), [...Array(49).fill(200), 201]);
    t.is(new Set(replies.map(({ body }) => `${body.id} ${body.slug}`)).size, 1);
    const { title, tags } = (await api.get(pathOf(externalId))).body;
    t.deepEqual(tags, [`tag-${title?.split(" ")[1]}`]);
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
