import test, { type ExecutionContext } from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR, type WebhookEvent } from "../../../resources/events/types.ts";
import { atOnce, clickAt, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { uniqueUrl, until } from "../../harness/webhooks.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const NOW = Date.parse("2030-06-15T12:00:00Z");
const TODAY = NOW / 86_400_000;
const from = (referrer: string) => clickAt(NOW, { referrer });
let count = 0;

/** Creates a link in a new organization, and resolves it as a redirect does. */
async function createResolvedLink(fields: { maxClicks?: number } = {}) {
  const name = `clicked-${++count}`;
  const { organization } = await first.organizations.create(name, "growth", OPERATOR);
  await first.links.create(organization.id, OPERATOR, linkFields({ slug: name, ...fields }));
  const link = await first.links.resolve(name);
  if (!link) throw new Error("the link was not found");
  return link;
}

function createWebhook(organizationId: string, events: WebhookEvent[], enabled = true) {
  const fields = { url: uniqueUrl(), events, enabled };
  return first.webhooks.create(organizationId, OPERATOR, fields, "whsec_secret");
}

const analytics = (
  { id, organizationId }: { id: string; organizationId: string },
  of: Pick<typeof first, "links"> = first,
) => of.links.analytics(organizationId, id, Math.floor(TODAY), Math.floor(TODAY));

const clickedEvents = (organizationId: string) =>
  database.knex("events").where({ organization_id: organizationId, type: "link.clicked" }).orderBy("id");

/** Waits until the events of an organization contain a number of clicks; returns the number of events. */
const eventsOfClicks = (organizationId: string, clicks: number) =>
  until(async () => {
    const events = await clickedEvents(organizationId);
    const sum = events.reduce((total, { data }) => total + JSON.parse(data).clicks, 0);
    if (sum > clicks) throw new Error(`events of ${sum} clicks`);
    return sum === clicks ? events.length : undefined;
  });

test("clicks counted by several processes add up in one row", async (t) => {
  const link = await createResolvedLink();
  await atOnce(40, (index) => (index % 2 ? first : second).links.click(link, from("a.example")));
  await Promise.all([analytics(link, first), analytics(link, second)]);
  t.deepEqual((await analytics(link)).referrers, [{ name: "a.example", clicks: 40 }]);
  const rows = await database.knex("click_counts").where({ link_id: link.id, dimension: "referrer" });
  t.is(rows.length, 1);
});

test("the number of referrers stored per link and day is limited", async (t) => {
  const link = await createResolvedLink();
  await atOnce(300, (index) => first.links.click(link, from(`host-${index}.example`)));
  const yesterday = { ...from("host-299.example"), clickedAt: NOW - 86_400_000 };
  await first.links.click(link, yesterday);
  const { referrers, days } = await analytics(link);
  t.deepEqual(referrers[0], { name: "(other)", clicks: 200 });
  t.deepEqual(days, [{ day: Math.floor(TODAY), bot: false, clicks: 300 }]);
  const rows = await database
    .knex("click_counts")
    .where({ link_id: link.id, dimension: "referrer", day: Math.floor(TODAY) });
  t.is(rows.length, 101);
});

test("every subscribed webhook gets an event with the source of the first click and the number of clicks", async (t) => {
  const link = await createResolvedLink();
  await createWebhook(link.organizationId, ["link.clicked", "link.created"]);
  await createWebhook(link.organizationId, ["link.clicked"]);
  await createWebhook(link.organizationId, ["link.updated"]);
  await createWebhook(link.organizationId, ["link.clicked"], false);
  // Concurrently, so both are part of one event however long each takes to store.
  await Promise.all([
    first.links.click(link, clickAt(NOW, { referrer: "a.example", country: "CH", device: "mobile" })),
    first.links.click(link, clickAt(NOW + 1, { bot: true })),
  ]);
  t.like(await first.links.find(link.organizationId, link.id), { clicks: 1, botClicks: 1 });
  const events = await clickedEvents(link.organizationId);
  const source = { referrer: "a.example", country: "CH", device: "mobile" };
  const unknown = { browser: null, operating_system: null };
  const clicked_at = "2030-06-15T12:00:00.000Z";
  t.deepEqual(
    events.map(({ data }) => JSON.parse(data)),
    [
      {
        link_id: link.id,
        slug: link.slug,
        url: link.url,
        clicked_at,
        clicks: 1,
        bot_clicks: 1,
        ...source,
        ...unknown,
      },
    ],
  );
  t.true(events.every(({ audited, address }) => !audited && address === null));
  for (const { id } of events) t.is((await database.knex("deliveries").where({ event_id: id })).length, 2);
});

/** Stops the clock that limits events. Returns a function that lets more than a second pass. */
function stopClock(t: ExecutionContext): () => void {
  const { now } = performance;
  let time = performance.now();
  performance.now = () => time;
  t.teardown(() => {
    performance.now = now;
  });
  return () => {
    time += 1001;
  };
}

// Serial, because the clock of the others must not stop.
test.serial("concurrent clicks are all counted, with at most one event per second", async (t) => {
  const passSecond = stopClock(t);
  const links = [await createResolvedLink(), await createResolvedLink()] as const;
  const [{ organizationId }] = links;
  await createWebhook(organizationId, ["link.clicked"]);
  for (const clicks of [300, 600]) {
    await atOnce(600, (index) => first.links.click(links[index % 2 === 0 ? 0 : 1], clickAt(NOW)));
    for (const link of links) t.is((await first.links.find(link.organizationId, link.id))?.clicks, clicks);
    t.is((await clickedEvents(organizationId)).length, 1, "all other clicks are of the same second");
  }
  passSecond();
  t.is(await eventsOfClicks(organizationId, 600), 2);
  t.deepEqual(await clickedEvents(links[1].organizationId), []);
});

test("each click on a link with max_clicks is counted once, and part of one event", async (t) => {
  const link = await createResolvedLink({ maxClicks: 3 });
  await createWebhook(link.organizationId, ["link.clicked"]);
  const results = await atOnce(5, () => first.links.click(link, clickAt(NOW)));
  t.is(results.filter(Boolean).length, 3);
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 3);
  t.true((await eventsOfClicks(link.organizationId, 3)) >= 1);
  t.is((await analytics(link)).days[0]?.clicks, 3);
});

test("clicks without a subscribed webhook have no events", async (t) => {
  const link = await createResolvedLink();
  await createWebhook(link.organizationId, ["link.created"]);
  await first.links.click(link, clickAt(NOW));
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 1);
  t.deepEqual(await clickedEvents(link.organizationId), []);
});

test.serial("a redirect executes only one statement, even with a webhook", async (t) => {
  const link = await createResolvedLink();
  await createWebhook(link.organizationId, ["link.clicked"]);
  await first.links.find(link.organizationId, link.id);
  const statements: string[] = [];
  const stop = first.onStatement((sql) => statements.push(sql));
  const resolved = await first.links.resolve(link.slug);
  t.true(resolved && (await first.links.click(resolved, clickAt(NOW))));
  stop();
  t.is(statements.length, 1, statements.join("\n"));
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 1);
  t.is((await clickedEvents(link.organizationId)).length, 1);
});

test("a graceful shutdown loses no click, event or analytics", async (t) => {
  const link = await createResolvedLink();
  await createWebhook(link.organizationId, ["link.clicked"]);
  const third = openStorage(storage.url, storage.encryptionKey);
  await atOnce(50, () => third.links.click(link, from("a.example")));
  await third.close();
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 50);
  t.true((await eventsOfClicks(link.organizationId, 50)) >= 1);
  t.deepEqual((await analytics(link)).referrers, [{ name: "a.example", clicks: 50 }]);
});

test("what could not be stored is stored later, and what was stored isn't counted again", async (t) => {
  const own = await createTestStorage();
  t.teardown(() => own.close());
  const { links, organizations } = own.first;
  const { organization } = await organizations.create("retried", "growth", OPERATOR);
  await links.create(organization.id, OPERATOR, linkFields({ slug: "retried" }));
  const link = await links.resolve("retried");
  if (!link) throw new Error("the link was not found");
  await own.database.knex.schema.renameTable("click_counts", "hidden");
  for (const clicks of [1, 2]) {
    await links.click(link, from("a.example"));
    t.is((await links.find(organization.id, link.id))?.clicks, clicks);
  }
  await own.database.knex.schema.renameTable("hidden", "click_counts");
  t.deepEqual((await analytics(link, own.first)).referrers, [{ name: "a.example", clicks: 2 }]);
  t.is((await links.find(organization.id, link.id))?.clicks, 2);
});

test("clicks on the same links, in another order in each process, are all counted", async (t) => {
  const links = await Promise.all(Array.from({ length: 20 }, () => createResolvedLink()));
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      [first, second].map(async (storage, process) => {
        const inTurn = process === 0 ? links : links.toReversed();
        for (const link of inTurn) await storage.links.click(link, clickAt(NOW));
        await storage.links.find(links[0]?.organizationId as string, "");
      }),
    );
  }
  for (const { organizationId, id } of links) t.is((await first.links.find(organizationId, id))?.clicks, 10);
});
