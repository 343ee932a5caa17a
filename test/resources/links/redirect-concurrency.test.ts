import test from "ava";
import { type Api, apiAt } from "../harness/api.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const people: Api = apiAt(service.url);
test.after.always(() => service.close());

/** Follows a link so many times at once; how often each status came. */
async function followAtOnce(slug: string, times: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  const replies = await Promise.all(Array.from({ length: times }, () => people.get(`/${slug}`)));
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test("200 clicks at once are 200 redirects and 200 clicks", async (t) => {
  const link = await api.createLink();
  t.deepEqual(await followAtOnce(link.slug, 200), { 302: 200 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 200);
});

test("of 200 clicks at once on a link with max_clicks 100 exactly 100 are redirected", async (t) => {
  const link = await api.createLink({ max_clicks: 100 });
  t.deepEqual(await followAtOnce(link.slug, 200), { 302: 100, 410: 100 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 100);
});

test("of 50 clicks at once on a link with max_clicks 1 exactly one is redirected", async (t) => {
  const link = await api.createLink({ max_clicks: 1 });
  t.deepEqual(await followAtOnce(link.slug, 50), { 302: 1, 410: 49 });
});

test("clicks are not lost while the link is changed", async (t) => {
  const link = await api.createLink();
  const [counts] = await Promise.all([
    followAtOnce(link.slug, 100),
    ...Array.from({ length: 10 }, (_, n) =>
      api.send("PATCH", `/v1/links/${link.id}`, { json: { title: `title ${n}` } }),
    ),
  ]);
  t.deepEqual(counts, { 302: 100 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 100);
});

test("a limit that is set after many clicks at once counts all of them", async (t) => {
  const link = await api.createLink();
  await followAtOnce(link.slug, 100);
  await api.send("PATCH", `/v1/links/${link.id}`, { json: { max_clicks: 110 } });
  t.deepEqual(await followAtOnce(link.slug, 20), { 302: 10, 410: 10 });
});
