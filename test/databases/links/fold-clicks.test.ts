import test from "ava";
import { toAnalyticsView } from "../../../resources/links/analytics.ts";
import type { ResolvedLink } from "../../../resources/links/types.ts";
import { atOnce, clickAt, createTestStorage, openObserved } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, knex, createOrganization } = storage;
const clickDetailDays = { free: 30, growth: 90, premium: 365 };
const open = () => openObserved(storage.url, storage.encryptionKey, { timeoutMs: 60_000, clickDetailDays });
const purging = open();

const HOUR_MS = 3_600_000;
const TODAY = Math.floor(Date.now() / (24 * HOUR_MS));
const OLD = TODAY - 91;
const SOURCES = [
  { referrer: "a.example", country: "CH", browser: "Firefox" },
  { referrer: "b.example", destination: "https://example.com/" },
  { bot: true },
];

async function clickedOn(days: number[], plan: "growth" | "premium" = "growth", count = 3) {
  const id = await createOrganization(plan);
  const links = await atOnce(count, async () => {
    const { slug } = await storage.createLink(id);
    return (await first.links.resolve(slug)) as ResolvedLink;
  });
  for (const day of days)
    for (const [index, link] of links.entries())
      for (let hour = 0; hour <= index; hour++)
        for (const source of SOURCES)
          await first.links.click(link, clickAt((day * 24 + hour) * HOUR_MS, source));
  await first.links.analytics(id, undefined, TODAY, TODAY);
  return { id, links: links.map((link) => link.id) };
}

const rowsOf = (id: string, day: number) => knex("click_counts").where({ organization_id: id, day });

async function totalsOf({ id, links }: Awaited<ReturnType<typeof clickedOn>>) {
  const read = async (link?: string) => (await first.links.analytics(id, link, OLD - 1, TODAY)).days;
  const days = await Promise.all([undefined, ...links].map(read));
  const top = await first.links.topLinks(id, OLD - 1, TODAY, 5);
  return { days: days.map((each) => each.toSorted((a, b) => a.day - b.day)), top };
}

test.serial("statistics older than the plan keeps them become one count per link and day", async (t) => {
  const organization = await clickedOn([OLD, OLD + 1]);
  const { id, links } = organization;
  const [before, recent] = [await totalsOf(organization), await rowsOf(id, OLD + 1)];
  const rows = await rowsOf(id, OLD);
  const details = () => knex("click_details").where({ organization_id: id }).orderBy("link_id").pluck("day");
  t.deepEqual(new Set(await details()), new Set([OLD, OLD + 1]));
  const { click_counts: deleted = 0, ...purged } = (await purging.purgeExpired()) ?? {};
  t.deepEqual(new Set(await details()), new Set([OLD + 1]));
  t.is(purged.click_details, (links.length + 1) * SOURCES.length);
  t.deepEqual(await totalsOf(organization), before);
  t.deepEqual(await rowsOf(id, OLD + 1), recent);
  const folded = await rowsOf(id, OLD);
  t.is(folded.length, (links.length + 1) * 2 + links.length);
  t.is(deleted, rows.length - links.length);
  const { hours, days, referrers, browsers, destinations } = toAnalyticsView(
    await first.links.analytics(id, links[1], OLD, OLD),
    { from: OLD, to: OLD },
    "UTC",
  );
  t.deepEqual(
    [hours, days[0]?.clicks, days[0]?.bot_clicks, referrers, browsers, destinations],
    [undefined, 4, 2, [], [], []],
  );
  const [stored] = await knex("links").where({ id: links[2] as string });
  t.deepEqual([stored?.clicks, stored?.bot_clicks], [12, 6]);
  t.is((await purging.purgeExpired())?.click_counts, 0);
});

test.serial("without a setting, statistics are kept, otherwise as long as the plan says", async (t) => {
  const [growth, premium] = [await clickedOn([OLD]), await clickedOn([OLD], "premium")];
  const [before, kept] = [await rowsOf(growth.id, OLD), await rowsOf(premium.id, OLD)];
  t.is((await first.purgeExpired())?.click_counts, 0);
  t.deepEqual(await rowsOf(growth.id, OLD), before);
  const next = open();
  t.true(((await next.purgeExpired())?.click_counts ?? 0) > 0);
  await next.close();
  t.deepEqual(await rowsOf(premium.id, OLD), kept);
});

test.serial("an interrupted purge changes no total, and the next one continues", async (t) => {
  const organization = await clickedOn([OLD], "growth", 25);
  const before = await totalsOf(organization);
  const [stopped, next] = [open(), open()];
  const stop = new AbortController();
  stopped.onStatement((sql) => /^delete from .click_counts/.test(sql) && stop.abort());
  const deleted = (await stopped.purgeExpired(stop.signal))?.click_counts ?? 0;
  t.true(deleted > 0);
  t.deepEqual(await totalsOf(organization), before);
  t.true(((await next.purgeExpired())?.click_counts ?? 0) > 0);
  t.deepEqual(await totalsOf(organization), before);
  t.is((await rowsOf(organization.id, OLD)).length, 26 * 2 + 25);
  await Promise.all([stopped.close(), next.close()]);
});
