import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import type { LinkFields, ResolvedLink } from "../../../resources/links/types.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, clickAt, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";
import { until } from "../../harness/webhooks.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, knex, createOrganization, createLink, createWebhook } = storage;

const NOW = Date.parse("2030-06-15T12:00:00Z");
const TODAY = Math.floor(NOW / 86_400_000);
const from = (referrer: string) => clickAt(NOW, { referrer });

type Owned = { id: string; organizationId: string };

async function createResolvedLink(fields: Partial<LinkFields> = {}): Promise<ResolvedLink> {
  const { slug } = await createLink(await createOrganization(), fields);
  return (await first.links.resolve(slug)) as ResolvedLink;
}

const subscribe = (organizationId: string) => createWebhook(organizationId, { events: ["link.clicked"] });
const analytics = ({ id, organizationId }: Owned, by = first) =>
  by.links.analytics(organizationId, id, TODAY, TODAY);
const clicksOf = async ({ id, organizationId }: Owned, by = first) =>
  (await by.links.find(organizationId, id))?.clicks;
const clickedEvents = (organizationId: string) =>
  knex("events").where({ organization_id: organizationId, type: "link.clicked" }).orderBy("id");

/** Waits until the events of an organization contain a number of clicks. Returns the number of events. */
const eventsOfClicks = (organizationId: string, clicks: number) =>
  until(async () => {
    const events = await clickedEvents(organizationId);
    const sum = events.reduce((total, { data }) => total + JSON.parse(data).clicks, 0);
    if (sum > clicks) throw new Error(`events of ${sum} clicks`);
    return sum === clicks ? events.length : undefined;
  });

test("every subscribed webhook gets an event with the source of the first click and the number of clicks", async (t) => {
  const link = await createResolvedLink();
  for (const events of [["link.clicked", "link.created"], ["link.clicked"], ["link.updated"]] as const)
    await createWebhook(link.organizationId, { events: [...events] });
  await createWebhook(link.organizationId, { events: ["link.clicked"], enabled: false });
  // Concurrently, so both are part of one event however long each takes to store.
  await Promise.all([
    first.links.click(link, clickAt(NOW, { referrer: "a.example", country: "CH", device: "mobile" })),
    first.links.click(link, clickAt(NOW + 1, { bot: true })),
  ]);
  t.like(await first.links.find(link.organizationId, link.id), { clicks: 1, botClicks: 1 });
  const [event, ...others] = await clickedEvents(link.organizationId);
  t.deepEqual(others, []);
  const { id: link_id, slug, url } = link;
  const source = { country: "CH", device: "mobile", browser: null, operating_system: null };
  t.deepEqual(JSON.parse(event?.data ?? ""), {
    ...{ link_id, slug, url, clicked_at: "2030-06-15T12:00:00.000Z", clicks: 1, bot_clicks: 1 },
    ...{ referrer: "a.example", ...source },
  });
  t.is(event?.address, null);
  await first.auditChain.append(link.organizationId);
  t.is((await clickedEvents(link.organizationId))[0]?.seq, null, "it isn't part of the audit log");
  t.is((await knex("deliveries").where({ event_id: event?.id ?? "" })).length, 2);
});

// Serial, because the clock of the others must not stop.
test.serial("concurrent clicks are all counted, with an event per second where one is wanted", async (t) => {
  const { now } = performance;
  let time = performance.now();
  performance.now = () => time;
  t.teardown(() => Object.assign(performance, { now }));
  const links = [await createResolvedLink(), await createResolvedLink()] as const;
  const [{ organizationId }] = links;
  await subscribe(organizationId);
  await createWebhook(links[1].organizationId);
  for (const clicks of [300, 600]) {
    await atOnce(600, (index) => first.links.click(links[index % 2 === 0 ? 0 : 1], clickAt(NOW)));
    for (const link of links) t.is(await clicksOf(link), clicks);
    t.is((await clickedEvents(organizationId)).length, 1, "all other clicks are of the same second");
  }
  time += 1001;
  t.is(await eventsOfClicks(organizationId, 600), 2);
  t.deepEqual(await clickedEvents(links[1].organizationId), []);
});

test("each click on a link with max_clicks is counted once, and part of one event", async (t) => {
  const link = await createResolvedLink({ maxClicks: 3 });
  await subscribe(link.organizationId);
  const results = await atOnce(5, () => first.links.click(link, clickAt(NOW)));
  t.is(results.filter(Boolean).length, 3);
  t.is(await clicksOf(link), 3);
  t.true((await eventsOfClicks(link.organizationId, 3)) >= 1);
  t.is((await analytics(link)).days[0]?.clicks, 3);
});

test("a graceful shutdown loses no click, event or analytics", async (t) => {
  const link = await createResolvedLink();
  await subscribe(link.organizationId);
  const other = openStorage(storage.url, storage.encryptionKey);
  await atOnce(50, () => other.links.click(link, from("a.example")));
  await other.close();
  t.is(await clicksOf(link), 50);
  t.true((await eventsOfClicks(link.organizationId, 50)) >= 1);
  t.deepEqual((await analytics(link)).referrers, [{ name: "a.example", clicks: 50 }]);
});

test("what could not be stored is stored later, and what was stored isn't counted again", async (t) => {
  const own = await createTestStorage();
  const { slug } = await own.createLink(await own.createOrganization());
  const link = (await own.first.links.resolve(slug)) as ResolvedLink;
  await own.knex.schema.renameTable("click_counts", "hidden");
  for (const clicks of [1, 2]) {
    await own.first.links.click(link, from("a.example"));
    t.is(await clicksOf(link, own.first), clicks);
  }
  await own.knex.schema.renameTable("hidden", "click_counts");
  t.deepEqual((await analytics(link, own.first)).referrers, [{ name: "a.example", clicks: 2 }]);
  t.is(await clicksOf(link, own.first), 2);
});

test("clicks on the same links, in another order in each process, are all counted", async (t) => {
  const links = await atOnce(20, () => createResolvedLink());
  for (let round = 0; round < 5; round++)
    await Promise.all(
      [first, second].map(async (process, index) => {
        for (const link of index === 0 ? links : links.toReversed())
          await process.links.click(link, clickAt(NOW));
        await process.links.find(links[0]?.organizationId as string, "");
      }),
    );
  for (const link of links) t.is(await clicksOf(link), 10);
});

test("no click is lost while its link is updated, also by another process", async (t) => {
  const link = await createResolvedLink();
  for (let round = 0; round < 10; round++)
    await Promise.all([
      ...Array.from({ length: 10 }, () => first.links.click(link, clickAt(NOW))),
      atOnce(5, (n) => second.links.update(link.organizationId, link.id, { title: `${n}` }, OPERATOR)),
      clicksOf(link),
    ]);
  t.is(await clicksOf(link), 100);
});

// Enough for two statements with equally many clicks.
const MANY = 700;

test.serial("a new limit of clicks includes those that are already counted", async (t) => {
  const id = await createOrganization();
  const stored = await storeManyLinks(knex, id, MANY, () => ({}), { prefix: `lnk_02${id.slice(-4)}` });
  const resolved = await Promise.all(stored.map(({ slug }) => first.links.resolve(slug)));
  const [link, ...others] = resolved as [ResolvedLink, ...ResolvedLink[]];
  const total = async () => {
    const found = await second.links.list(id, {}, MANY);
    return found === "timeout" ? found : found.reduce((sum, { clicks }) => sum + clicks, 0);
  };
  for (const round of [1, 2]) {
    await Promise.all([link, ...others].map((each) => first.links.click(each, clickAt(NOW))));
    await first.links.find(id, link.id); // waits until they are stored
    t.is(await total(), round * MANY);
  }
  const changed = await second.links.update(id, link.id, { maxClicks: 3 }, OPERATOR);
  t.like(changed, { clicks: 2, maxClicks: 3 });
  const limited = (await first.links.resolve(link.slug)) as ResolvedLink;
  const accepted = await atOnce(3, () => first.links.click(limited, clickAt(NOW)));
  t.is(accepted.filter(Boolean).length, 1);
  t.is(await clicksOf(link), 3);
  t.is(await total(), 2 * MANY + 1);
});
