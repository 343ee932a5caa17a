import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../../harness/api.ts";
import { tokensFor } from "../../harness/flow.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

test("a link made from a url alone has every field, with its default", async (t) => {
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
    clicks: 0,
    last_clicked_at: null,
    created_by: app.clientId,
  });
});

test("a link keeps every field that was sent, and reads back the same", async (t) => {
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
  const made = await api.createLink({ ...fields, expires_at: "2099-01-31T12:00:00+02:00" });
  const { url, slug, title, tags, external_id, metadata, max_clicks, redirect_type } = made;
  t.deepEqual({ url, slug, title, tags, external_id, metadata, max_clicks, redirect_type }, fields);
  t.is(made.expires_at, "2099-01-31T10:00:00.000Z");
  t.is(made.short_url, `${service.url}/All-Fields_1`);
  t.deepEqual((await api.get(`/v1/links/${made.id}`)).body, made);
});

test("Location leads to the new link, and its ETag is the one that reading it gives", async (t) => {
  const reply = await api.send<LinkBody>("POST", "/v1/links", { json: { url: "https://example.com" } });
  const location = new URL(reply.headers.get("location") ?? "", `${service.url}/v1/links`);
  t.is(location.href, `${service.url}/v1/links/${reply.body.id}`);
  const again = await api.get(location.pathname);
  t.is(again.headers.get("etag"), reply.headers.get("etag"));
  t.regex(reply.headers.get("etag") ?? "", /^"[^"]+"$/);
});

test("null is what an empty field is: it may be sent for each of them", async (t) => {
  const link = await api.createLink({ title: null, external_id: null, expires_at: null, max_clicks: null });
  t.deepEqual([link.title, link.external_id, link.expires_at, link.max_clicks], [null, null, null, null]);
});

test("a tag that is sent twice is kept once", async (t) => {
  t.deepEqual((await api.createLink({ tags: ["a", "b", "a"] })).tags, ["a", "b"]);
});

test("a person is the maker of a link that an app makes in his or her name", async (t) => {
  const user = await service.createUser([app.id]);
  const tokens = await tokensFor(service, app, user);
  t.is((await apiAt(service.url, tokens.access_token).createLink()).created_by, user.id);
});

test("a slug that is taken is refused with 409 in the own organization and in another one", async (t) => {
  const { slug } = await api.createLink({ slug: "taken" });
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  for (const caller of [api, other]) {
    const reply = await caller.send("POST", "/v1/links", { json: { url: "https://example.com", slug } });
    isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
  }
});

test("slugs that differ in case are two slugs", async (t) => {
  const urls = ["https://example.com/1", "https://example.com/2", "https://example.com/3"];
  for (const [index, slug] of ["CaseTest", "casetest", "CASETEST"].entries()) {
    await api.createLink({ slug, url: urls[index] });
  }
  const { headers } = await fetch(`${service.url}/casetest`, { redirect: "manual" });
  t.is(headers.get("location"), urls[1] ?? "");
});

test("the slug of a deleted link is not given out again, to anybody", async (t) => {
  const { id, slug } = await api.createLink({ slug: "deleted-one" });
  t.is((await api.send("DELETE", `/v1/links/${id}`)).status, 204);
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  for (const caller of [api, other]) {
    const reply = await caller.send("POST", "/v1/links", { json: { url: "https://example.com", slug } });
    isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
  }
});

test("an external_id is unique in its organization alone, and free again after a delete", async (t) => {
  const { id } = await api.createLink({ external_id: "ext-1" });
  const again = { json: { url: "https://example.com", external_id: "ext-1" } };
  const refused = await api.send("POST", "/v1/links", again);
  isProblem(t, refused, { status: 409, code: "external_id_taken", fields: ["external_id"] });
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  t.is((await other.send("POST", "/v1/links", again)).status, 201);
  await api.send("DELETE", `/v1/links/${id}`);
  t.is((await api.send("POST", "/v1/links", again)).status, 201);
});

test("external_ids that differ in case are two", async (t) => {
  await api.createLink({ external_id: "Case" });
  t.is((await api.createLink({ external_id: "case" })).external_id, "case");
});

test("of 20 requests for one slug at once exactly one gets it", async (t) => {
  const json = { url: "https://example.com", slug: "contested" };
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => api.send("POST", "/v1/links", { json })),
  );
  const statuses = replies.map(({ status }) => status).sort();
  t.deepEqual(statuses, [201, ...Array(19).fill(409)]);
});
