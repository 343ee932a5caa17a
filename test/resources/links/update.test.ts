import test from "ava";
import { apiAt, isMissing, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

const patch = (id: string, json: unknown) => api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });
const FULL = {
  title: "Title",
  tags: ["a"],
  external_id: "update-1",
  metadata: { a: 1 },
  expires_at: "2099-01-01T00:00:00.000Z",
  max_clicks: 5,
  redirect_type: 301,
};

const changes: Record<string, unknown>[] = [
  { url: "https://example.org/new" },
  { slug: "a-new-slug" },
  { title: "New" },
  { tags: ["x", "y"] },
  { tags: [] },
  { external_id: "another" },
  { metadata: { b: true } },
  { metadata: {} },
  { archived: true },
  { expires_at: "2098-01-01T00:00:00.000Z" },
  { max_clicks: 1 },
  { redirect_type: 307 },
  { title: null },
  { external_id: null },
  { expires_at: null },
  { max_clicks: null },
];
for (const [index, change] of changes.entries()) {
  test(`an update of ${JSON.stringify(change)} changes nothing else`, async (t) => {
    const created = await api.createLink({ ...FULL, external_id: `update-${index}` });
    advanceClock(1);
    const { status, body } = await patch(created.id, change);
    t.is(status, 200);
    const short_url = `${service.url}/${body.slug}`;
    t.deepEqual(body, { ...created, ...change, short_url, updated_at: body.updated_at });
    t.true(body.updated_at > created.updated_at);
    t.deepEqual((await api.get(`/v1/links/${created.id}`)).body, body);
  });
}

test("an update with the current values changes neither the ETag nor updated_at", async (t) => {
  const created = await api.createLink({ ...FULL, external_id: "same", metadata: { a: 1, b: "x" } });
  const { headers } = await api.get(`/v1/links/${created.id}`);
  advanceClock(1);
  for (const change of [
    {},
    { title: FULL.title },
    { ...FULL, external_id: "same", metadata: { b: "x", a: 1 } },
  ]) {
    const reply = await patch(created.id, change);
    t.deepEqual(reply.body, created);
    t.is(reply.headers.get("etag"), headers.get("etag"));
  }
});

test("a new slug redirects, and the old one no longer does", async (t) => {
  const { id, slug } = await api.createLink({ slug: "old-name" });
  await patch(id, { slug: "new-name" });
  t.is((await fetch(`${service.url}/new-name`, { redirect: "manual" })).status, 302);
  t.is((await fetch(`${service.url}/${slug}`, { redirect: "manual" })).status, 404);
});

test("an update may repeat the current slug", async (t) => {
  const { id, slug } = await api.createLink();
  t.is((await patch(id, { slug })).status, 200);
});

test("an update to a taken slug or external_id is rejected and changes nothing", async (t) => {
  await api.createLink({ slug: "occupied", external_id: "occupied" });
  const created = await api.createLink();
  for (const field of ["slug", "external_id"]) {
    const reply = await patch(created.id, { title: "x", [field]: "occupied" });
    isProblem(t, reply, { status: 409, code: `${field}_taken`, fields: [field] });
  }
  t.deepEqual((await api.get(`/v1/links/${created.id}`)).body, created);
});

test("an update cannot reuse the slug of a deleted link", async (t) => {
  const deleted = await api.createLink({ slug: "deleted-slug" });
  await api.send("DELETE", `/v1/links/${deleted.id}`);
  const { id } = await api.createLink();
  isProblem(t, await patch(id, { slug: deleted.slug }), {
    status: 409,
    code: "slug_taken",
    fields: ["slug"],
  });
});

test("a deleted link is not found by any method", async (t) => {
  const { id } = await api.createLink();
  const reply = await api.send("DELETE", `/v1/links/${id}`);
  t.is(reply.status, 204);
  t.is(reply.text, "");
  isMissing(t, await api.get(`/v1/links/${id}`));
  isMissing(t, await patch(id, { title: "x" }));
  isMissing(t, await api.send("DELETE", `/v1/links/${id}`));
});

test("an expired link works again with a later expires_at", async (t) => {
  const soon = new Date(Date.now() + 60_000).toISOString();
  const { id, slug } = await api.createLink({ expires_at: soon });
  advanceClock(61_000);
  t.is((await fetch(`${service.url}/${slug}`, { redirect: "manual" })).status, 410);
  t.is((await patch(id, { expires_at: "2099-01-01T00:00:00Z" })).status, 200);
  t.is((await fetch(`${service.url}/${slug}`, { redirect: "manual" })).status, 302);
});

test("concurrent updates and deletions never give one slug to two links", async (t) => {
  for (let round = 0; round < 3; round++) {
    const contested = `contested-${round}`;
    const links = await atOnce(6, () => api.createLink());
    const replies = await Promise.all(
      links.flatMap(({ id }, index) => [
        patch(id, { slug: contested, external_id: contested }),
        patch(id, { external_id: null, title: `${index}` }),
        ...(index % 3 ? [] : [api.send("DELETE", `/v1/links/${id}`)]),
      ]),
    );
    for (const { status, text } of replies) t.true([200, 204, 404, 409].includes(status), text);
    const current = await Promise.all(links.map(({ id }) => api.get(`/v1/links/${id}`)));
    const holders = current.filter(({ body }) => body.slug === contested || body.external_id === contested);
    t.true(holders.length <= 1);
    t.not(
      (await apiAt(service.url).get(`/${contested}`)).status,
      404,
      "the winner has the slug, or had it when it was deleted",
    );
  }
});
