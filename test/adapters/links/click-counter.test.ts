import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { OPERATOR, type WebhookEvent } from "../../resources/events.ts";
import { limitsOf } from "../../resources/plans.ts";
import type { Click } from "../../resources/ports.ts";
import { atOnce, clickAt, createTestStorage, linkFields } from "../harness/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const NOW = Date.parse("2030-06-15T12:00:00Z");
const TODAY = NOW / 86_400_000;
const from = (referrer: string): Click => ({ ...clickAt(NOW), referrer });
let count = 0;

/** A link of an organization of its own, as whoever follows it finds it. */
async function newLink(fields: { maxClicks?: number } = {}) {
  const name = `clicked-${++count}`;
  const { organization } = await first.organizations.create(name, "growth", OPERATOR);
  await first.links.create(organization.id, OPERATOR, linkFields({ slug: name, ...fields }));
  const destination = await first.links.resolve(name);
  if (!destination) throw new Error("no link");
  return destination;
}

function createWebhook(organizationId: string, events: WebhookEvent[], enabled = true) {
  const fields = { url: "https://example.com/", events, enabled };
  return first.webhooks.create(organizationId, OPERATOR, fields, "whsec_secret", limitsOf);
}

const analytics = (
  { id, organizationId }: { id: string; organizationId: string },
  of: Pick<typeof first, "links"> = first,
) => of.links.analytics(organizationId, id, Math.floor(TODAY), Math.floor(TODAY));

const clickedEvents = (organizationId: string) =>
  database.knex("events").where({ organization_id: organizationId, type: "link.clicked" }).orderBy("id");

test("clicks of two processes add up in one row", async (t) => {
  const link = await newLink();
  await atOnce(40, (index) => (index % 2 ? first : second).links.click(link, from("a.example")));
  await Promise.all([analytics(link, first), analytics(link, second)]);
  t.deepEqual((await analytics(link)).referrers, [{ name: "a.example", clicks: 40 }]);
  const rows = await database.knex("click_stats").where({ link_id: link.id });
  t.is(rows.length, 1);
});

test("a hundred referrers of a link and day are told apart, however many are made up", async (t) => {
  const link = await newLink();
  await atOnce(300, (index) => first.links.click(link, from(`host-${index}.example`)));
  const yesterday = { ...from("host-299.example"), at: NOW - 86_400_000 };
  await first.links.click(link, yesterday);
  const { referrers, days } = await analytics(link);
  t.deepEqual(referrers[0], { name: "(other)", clicks: 200 });
  t.deepEqual(days, [{ day: Math.floor(TODAY), bot: false, clicks: 300 }]);
  const rows = await database.knex("click_stats").where({ link_id: link.id, day: Math.floor(TODAY) });
  t.is(rows.length, 101);
});

test("whoever asked for clicks is told of each, with where it came from", async (t) => {
  const link = await newLink();
  await createWebhook(link.organizationId, ["link.clicked", "link.created"]);
  await createWebhook(link.organizationId, ["link.clicked"]);
  await createWebhook(link.organizationId, ["link.updated"]);
  await createWebhook(link.organizationId, ["link.clicked"], false);
  await first.links.click(link, { at: NOW, referrer: "a.example", country: "CH", bot: false });
  await first.links.click(link, { at: NOW + 1, referrer: null, country: null, bot: true });
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 2);
  const events = await clickedEvents(link.organizationId);
  t.deepEqual(
    events.map(({ data }) => JSON.parse(data)),
    [
      { clicked_at: "2030-06-15T12:00:00.000Z", referrer: "a.example", country: "CH", bot: false },
      { clicked_at: "2030-06-15T12:00:00.001Z", referrer: null, country: null, bot: true },
    ].map((seen) => ({ link_id: link.id, slug: link.slug, url: link.url, ...seen })),
  );
  t.true(events.every(({ audited, address }) => !audited && address === null));
  for (const { id } of events) t.is((await database.knex("deliveries").where({ event_id: id })).length, 2);
});

test("1,200 clicks at once are 1,200 events and 1,200 clicks", async (t) => {
  const links = [await newLink(), await newLink()] as const;
  await createWebhook(links[0].organizationId, ["link.clicked"]);
  await atOnce(1200, (index) => first.links.click(links[index % 2 === 0 ? 0 : 1], clickAt(NOW)));
  for (const [index, { id, organizationId }] of links.entries()) {
    t.is((await first.links.find(organizationId, id))?.clicks, 600);
    t.is((await clickedEvents(organizationId)).length, index === 0 ? 600 : 0);
  }
});

test("clicks of a link with max_clicks are told and counted once", async (t) => {
  const link = await newLink({ maxClicks: 3 });
  await createWebhook(link.organizationId, ["link.clicked"]);
  const answers = await atOnce(5, () => first.links.click(link, clickAt(NOW)));
  t.is(answers.filter(Boolean).length, 3);
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 3);
  t.is((await clickedEvents(link.organizationId)).length, 3);
  t.is((await analytics(link)).days[0]?.clicks, 3);
});

test("an organization with no webhook for clicks has no events of them", async (t) => {
  const link = await newLink();
  await createWebhook(link.organizationId, ["link.created"]);
  await first.links.click(link, clickAt(NOW));
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 1);
  t.deepEqual(await clickedEvents(link.organizationId), []);
});

test.serial("a redirect waits for one statement, whoever is told of it", async (t) => {
  const link = await newLink();
  await createWebhook(link.organizationId, ["link.clicked"]);
  await first.links.find(link.organizationId, link.id);
  const statements: string[] = [];
  const stop = first.onStatement((sql) => statements.push(sql));
  const destination = await first.links.resolve(link.slug);
  t.true(destination && (await first.links.click(destination, clickAt(NOW))));
  stop();
  t.is(statements.length, 1, statements.join("\n"));
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 1);
  t.is((await clickedEvents(link.organizationId)).length, 1);
});

test("a clean stop loses no click, no event and no statistic", async (t) => {
  const link = await newLink();
  await createWebhook(link.organizationId, ["link.clicked"]);
  const third = openStorage(storage.url, storage.encryptionKey);
  await atOnce(50, () => third.links.click(link, from("a.example")));
  await third.close();
  t.is((await first.links.find(link.organizationId, link.id))?.clicks, 50);
  t.is((await clickedEvents(link.organizationId)).length, 50);
  t.deepEqual((await analytics(link)).referrers, [{ name: "a.example", clicks: 50 }]);
});
