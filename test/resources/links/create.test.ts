import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

test("a link created from only a URL has defaults for all other fields", async (t) => {
  const before = Date.now();
  const reply = await api.send<LinkBody>("POST", "/v1/links", { json: { url: "https://example.com/page" } });
  t.is(reply.status, 201);
  t.regex(reply.headers.get("content-type") ?? "", /^application\/json\b/);
  const { id, slug, created_at, updated_at, ...rest } = reply.body;
  t.regex(id, /^lnk_[0-9A-Z]{26}$/);
  t.regex(slug, /^[A-Za-z0-9]{7}$/);
  t.regex(created_at, RFC3339);
  t.true(Date.parse(created_at) >= before && Date.parse(created_at) <= Date.now());
  t.is(updated_at, created_at);
  t.deepEqual(rest, {
    url: "https://example.com/page",
    short_url: `${service.url}/${slug}`,
    title: null,
    tags: [],
    external_id: null,
    metadata: {},
    archived: false,
    expires_at: null,
    max_clicks: null,
    redirect_type: 302,
    fallback_url: null,
    clicks: 0,
    bot_clicks: 0,
    last_clicked_at: null,
    created_by: app.clientId,
    created_via: null,
    disabled_at: null,
    disabled_reason: null,
  });
});

test("a link keeps every field that was sent", async (t) => {
  const fields = {
    url: "https://example.com/ü?a=b&c=%20#frag",
    slug: "All-Fields_1",
    title: "Spring sale – 日本語 🎉 <b>\"'&",
    tags: ["news", "Ünïcode", 'a "quoted" one', "50%_off"],
    external_id: "crm/42:ä",
    metadata: { text: "line\nbreak", number: 1.5, yes: true, no: false, nothing: null, "key with space": "" },
    max_clicks: 10,
    redirect_type: 308,
  };
  const created = await api.createLink({ ...fields, expires_at: "2099-01-31T12:00:00+02:00" });
  const { url, slug, title, tags, external_id, metadata, max_clicks, redirect_type } = created;
  t.deepEqual({ url, slug, title, tags, external_id, metadata, max_clicks, redirect_type }, fields);
  t.is(created.expires_at, "2099-01-31T10:00:00.000Z");
  t.is(created.short_url, `${service.url}/All-Fields_1`);
  t.deepEqual((await api.get(`/v1/links/${created.id}`)).body, created);
});

test("the response has the Location of the new link and its current ETag", async (t) => {
  const reply = await api.send<LinkBody>("POST", "/v1/links", { json: { url: "https://example.com" } });
  const location = new URL(reply.headers.get("location") ?? "", `${service.url}/v1/links`);
  t.is(location.href, `${service.url}/v1/links/${reply.body.id}`);
  const current = await api.get(location.pathname);
  t.is(current.headers.get("etag"), reply.headers.get("etag"));
  t.regex(reply.headers.get("etag") ?? "", /^"[^"]+"$/);
});

test("null is accepted for every nullable field", async (t) => {
  const link = await api.createLink({ title: null, external_id: null, expires_at: null, max_clicks: null });
  t.deepEqual([link.title, link.external_id, link.expires_at, link.max_clicks], [null, null, null, null]);
});

test("duplicate tags are removed", async (t) => {
  t.deepEqual((await api.createLink({ tags: ["a", "b", "a"] })).tags, ["a", "b"]);
});

test("a link created by an app on behalf of a user has the user as its creator", async (t) => {
  const user = await service.createUser([app.id]);
  const tokens = await tokensFor(service, app, user);
  const link = await apiAt(service.url, tokens.access_token).createLink();
  t.is(link.created_by, user.id);
  t.is(link.created_via, app.clientId);
});

test("a taken slug is rejected, in the same organization and in others", async (t) => {
  const { slug } = await api.createLink({ slug: "taken" });
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  for (const caller of [api, other]) {
    const reply = await caller.send("POST", "/v1/links", { json: { url: "https://example.com", slug } });
    isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
  }
});

test("slugs are case-sensitive", async (t) => {
  const urls = ["https://example.com/1", "https://example.com/2", "https://example.com/3"];
  for (const [index, slug] of ["CaseTest", "casetest", "CASETEST"].entries()) {
    await api.createLink({ slug, url: urls[index] });
  }
  const { headers } = await fetch(`${service.url}/casetest`, { redirect: "manual" });
  t.is(headers.get("location"), urls[1] ?? "");
});

test("the slug of a deleted link is never reused, in any organization", async (t) => {
  const { id, slug } = await api.createLink({ slug: "deleted-one" });
  t.is((await api.send("DELETE", `/v1/links/${id}`)).status, 204);
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  for (const caller of [api, other]) {
    const reply = await caller.send("POST", "/v1/links", { json: { url: "https://example.com", slug } });
    isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
  }
});

test("an external_id is unique per organization, and free again after a deletion", async (t) => {
  const { id } = await api.createLink({ external_id: "ext-1" });
  const request = { json: { url: "https://example.com", external_id: "ext-1" } };
  const rejected = await api.send("POST", "/v1/links", request);
  isProblem(t, rejected, { status: 409, code: "external_id_taken", fields: ["external_id"] });
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  t.is((await other.send("POST", "/v1/links", request)).status, 201);
  await api.send("DELETE", `/v1/links/${id}`);
  t.is((await api.send("POST", "/v1/links", request)).status, 201);
});

test("external_ids are case-sensitive", async (t) => {
  await api.createLink({ external_id: "Case" });
  t.is((await api.createLink({ external_id: "case" })).external_id, "case");
});

test("concurrent requests for one slug succeed exactly once", async (t) => {
  const json = { url: "https://example.com", slug: "contested" };
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => api.send("POST", "/v1/links", { json })),
  );
  const statuses = replies.map(({ status }) => status).sort();
  t.deepEqual(statuses, [201, ...Array(19).fill(409)]);
});
