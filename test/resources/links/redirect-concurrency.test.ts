import test from "ava";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const visitor: Api = apiAt(service.url);
test.after.always(() => service.close());

/** Follows a link concurrently, and counts the responses by status. */
async function followConcurrently(slug: string, times: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  const replies = await Promise.all(Array.from({ length: times }, () => visitor.get(`/${slug}`)));
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test("concurrent clicks are all redirected and counted", async (t) => {
  const link = await api.createLink();
  t.deepEqual(await followConcurrently(link.slug, 200), { 302: 200 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 200);
});

test("concurrent clicks never exceed max_clicks", async (t) => {
  const link = await api.createLink({ max_clicks: 100 });
  t.deepEqual(await followConcurrently(link.slug, 200), { 302: 100, 410: 100 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 100);
});

test("a single-use link redirects exactly one of many concurrent clicks", async (t) => {
  const link = await api.createLink({ max_clicks: 1 });
  t.deepEqual(await followConcurrently(link.slug, 50), { 302: 1, 410: 49 });
});

test("no click is lost while the link is updated", async (t) => {
  const link = await api.createLink();
  const [counts] = await Promise.all([
    followConcurrently(link.slug, 100),
    ...Array.from({ length: 10 }, (_, n) =>
      api.send("PATCH", `/v1/links/${link.id}`, { json: { title: `title ${n}` } }),
    ),
  ]);
  t.deepEqual(counts, { 302: 100 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 100);
});

test("a limit that is set later includes all earlier clicks", async (t) => {
  const link = await api.createLink();
  await followConcurrently(link.slug, 100);
  await api.send("PATCH", `/v1/links/${link.id}`, { json: { max_clicks: 110 } });
  t.deepEqual(await followConcurrently(link.slug, 20), { 302: 10, 410: 10 });
});
