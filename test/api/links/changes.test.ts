import test from "ava";
import { apiAt, isInvalid, isProblem, type LinkBody, newApi } from "../../harness/clients/api.ts";
import { shareApi, tokensFor } from "../../harness/clients/authorization.ts";
import { advanceClock } from "../../harness/clock.ts";

export const databases = "all";

const { service, app, api } = await shareApi();

const url = "https://example.com/";
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const MERGE_PATCH = "application/merge-patch+json";

const create = (json: object, caller = api) => caller.send<LinkBody>("POST", "/v1/links", { json });
const patch = (id: string, json: unknown) => api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });
const mergePatch = (id: string, json: unknown) => {
  const options = { body: JSON.stringify(json), headers: { "content-type": MERGE_PATCH } };
  return api.send<LinkBody>("PATCH", `/v1/links/${id}`, options);
};
const remove = (id: string) => api.send("DELETE", `/v1/links/${id}`);
const read = async (id: string) => (await api.get(`/v1/links/${id}`)).body;
const visit = async (slug: string) => {
  const { status, headers } = await fetch(`${service.url}/${slug}`, { redirect: "manual" });
  return headers.get("location") ?? status;
};

test("a link created from only a URL has defaults for all other fields, its Location and its ETag", async (t) => {
  const before = Date.now();
  // Parameters of the query are no fields.
  const path = "/v1/links?clicks=5&slug=query";
  const { status, headers, body } = await api.send<LinkBody>("POST", path, { json: { url } });
  t.is(status, 201);
  const { id, slug, created_at, updated_at, ...rest } = body;
  t.regex(id, /^lnk_[0-9A-Z]{26}$/);
  t.regex(slug, /^[A-Za-z0-9]{7}$/);
  t.regex(created_at, RFC3339);
  t.true(Date.parse(created_at) >= before && Date.parse(created_at) <= Date.now());
  t.is(updated_at, created_at);
  t.deepEqual(rest, {
    url,
    short_url: `${service.url}/${slug}`,
    domain: new URL(service.url).host,
    title: null,
    tags: [],
    external_id: null,
    metadata: {},
    archived: false,
    expires_at: null,
    max_clicks: null,
    redirect_type: 302,
    fallback_url: null,
    forward_query: true,
    forward_path: false,
    rules: [],
    card: null,
    has_password: false,
    clicks: 0,
    bot_clicks: 0,
    last_clicked_at: null,
    created_by: app.clientId,
    created_via: null,
    disabled_at: null,
    disabled_reason: null,
  });
  t.is(headers.get("location"), `/v1/links/${id}`);
  t.is((await api.get(`/v1/links/${id}`)).headers.get("etag"), headers.get("etag"));
});

test("a link created by an app on behalf of a user has the user as its creator", async (t) => {
  const user = await service.createUser([app.id]);
  const tokens = await tokensFor(service, app, user);
  const link = await apiAt(service.url, tokens.access_token).createLink();
  t.deepEqual([link.created_by, link.created_via], [user.id, app.clientId]);
});

test("each operation refuses an invalid value and an unknown field by name, and changes nothing", async (t) => {
  const link = await api.createLink({ external_id: "unchanged" });
  const operations = [
    (json: object) => create({ url, ...json }),
    (json: object) => patch(link.id, { archived: true, ...json }),
    (json: object) => mergePatch(link.id, { archived: true, ...json }),
    (json: object) =>
      api.send("PUT", "/v1/links/by-external-id/unchanged", { json: { url: `${url}new`, ...json } }),
  ];
  for (const send of operations) {
    const invalid = await send({ max_clicks: 0 });
    isInvalid(t, invalid, "max_clicks");
    const unknown = await send({ clicks: 1000 });
    isProblem(t, unknown, { status: 422, code: "unknown_field", fields: ["clicks"] });
  }
  t.deepEqual(await read(link.id), link);
});

test("a slug is taken in every organization, for good, and case-sensitive", async (t) => {
  const other = await newApi(service);
  const first = await api.createLink({ slug: "Taken" });
  await remove((await api.createLink({ slug: "deleted" })).id);
  const free = await api.createLink({ slug: "taken", url: `${url}other` });
  for (const slug of ["Taken", "deleted"]) {
    const taken = { status: 409, code: "slug_taken", fields: ["slug"] };
    for (const caller of [api, other]) isProblem(t, await create({ url, slug }, caller), taken);
    isProblem(t, await patch(free.id, { title: "x", slug }), taken);
  }
  t.deepEqual(await read(free.id), free);
  t.deepEqual([await visit("Taken"), await visit("taken"), await visit("TAKEN")], [first.url, free.url, 404]);
});

test("an update changes updated_at and the ETag, and one with the values of the link changes nothing", async (t) => {
  const created = await api.createLink({
    metadata: { a: 1, b: "x" },
    expires_at: "2099-01-01T00:00:00.000Z",
  });
  advanceClock(1);
  const change = { title: "New", expires_at: "2098-01-01T00:00:00.000Z" };
  const { status, headers, body } = await patch(created.id, change);
  t.is(status, 200);
  t.deepEqual(body, { ...created, ...change, updated_at: body.updated_at });
  t.true(body.updated_at > created.updated_at);
  advanceClock(1);
  for (const same of [change, { metadata: { b: "x", a: 1 } }, {}]) {
    const again = await patch(created.id, same);
    t.deepEqual([again.body, again.headers.get("etag")], [body, headers.get("etag")]);
  }
});

const METADATA = { kept: "a", changed: 1, removed: true, empty: null };

test("a merge patch sets the keys of the metadata, removes those that are null, and keeps the others", async (t) => {
  const { id } = await api.createLink({ metadata: METADATA, title: "Title", tags: ["a"] });
  const metadata = { changed: 2, removed: null, added: "b", unknown: null };
  const { status, body } = await mergePatch(id, { metadata, title: null, tags: ["b"] });
  t.is(status, 200);
  t.deepEqual(body.metadata, { kept: "a", changed: 2, empty: null, added: "b" });
  t.is(body.title, null);
  t.deepEqual(body.tags, ["b"], "an array is replaced (RFC 7396 §1)");
  t.deepEqual((await patch(id, { metadata: { removed: null } })).body.metadata, { removed: null });
});

test("a merge patch can't exceed the limits of the metadata", async (t) => {
  const { id } = await api.createLink({ metadata: METADATA });
  const many = Object.fromEntries(Array.from({ length: 48 }, (_, key) => [`key${key}`, "x"]));
  const refused = { status: 422, code: "invalid_metadata", fields: ["metadata"] };
  isProblem(t, await mergePatch(id, { metadata: many }), refused);
  t.is((await mergePatch(id, { metadata: { ...many, removed: null, changed: null } })).status, 200);
});

test("concurrent updates without If-Match, and merge patches of different keys, all take effect", async (t) => {
  const { id } = await api.createLink();
  const fields = { title: "t", tags: ["t"], external_id: "t", max_clicks: 3, archived: true };
  const replies = await Promise.all([
    ...Object.entries(fields).map(([name, value]) => patch(id, { [name]: value })),
    ...Array.from({ length: 10 }, (_, key) => mergePatch(id, { metadata: { [key]: key } })),
  ]);
  t.true(replies.every(({ status }) => status === 200));
  t.like(await read(id), fields);
  t.is(Object.keys((await read(id)).metadata).length, 10);
});
