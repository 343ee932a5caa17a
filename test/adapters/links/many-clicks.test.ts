import test from "ava";
import { openStorage, type Storage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { LinkChanges, ResolvedLink } from "../../../resources/links/types.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, clickAt, createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

// Enough for two statements with equally many clicks.
const LINKS = 700;
const NOW = Date.parse("2030-06-15T12:00:00Z");

/** Opens a database of its own with many links. */
async function openLinks() {
  const storage = await createTestStorage();
  const { first, database } = storage;
  const { organization } = await first.organizations.create("clicked", "growth", OPERATOR);
  const { id } = organization;
  const stored = await storeManyLinks(database.knex, id, LINKS, () => ({}));
  const links = await Promise.all(stored.map(({ slug }) => first.links.resolve(slug)));
  return { ...storage, organizationId: id, links: links as ResolvedLink[] };
}

/** Clicks each link once, and waits until that is stored. */
async function clickAll({ links: store }: Pick<Storage, "links">, links: ResolvedLink[]) {
  await atOnce(links.length, (index) => store.click(links[index] as ResolvedLink, clickAt(NOW)));
  await store.find(links[0]?.organizationId as string, links[0]?.id as string);
}

async function totalOf({ links }: Pick<Storage, "links">, organizationId: string) {
  const found = await links.list(organizationId, {}, LINKS);
  return found === "timeout" ? found : found.reduce((sum, { clicks }) => sum + clicks, 0);
}

test("clicks on many links are counted in the links", async (t) => {
  const { first, second, organizationId, links, close } = await openLinks();
  await clickAll(first, links);
  t.is(await totalOf(second, organizationId), LINKS);
  await close();
});

test("a new limit of clicks includes those that are already counted", async (t) => {
  const { first, second, organizationId, links, close } = await openLinks();
  const [{ id, slug }] = links as [ResolvedLink];
  await clickAll(first, links);
  await clickAll(first, links);
  const changes: LinkChanges = { maxClicks: 3 };
  t.like(await second.links.update(organizationId, id, changes, OPERATOR), { clicks: 2, maxClicks: 3 });
  const link = (await first.links.resolve(slug)) as ResolvedLink;
  const accepted = await atOnce(3, () => first.links.click(link, clickAt(NOW)));
  t.is(accepted.filter(Boolean).length, 1);
  t.like(await first.links.find(organizationId, id), { clicks: 3 });
  t.is(await totalOf(first, organizationId), 2 * LINKS + 1);
  await close();
});

test("a shutdown loses no click on many links", async (t) => {
  const { first, links, organizationId, close, url, encryptionKey } = await openLinks();
  const third = openStorage(url, encryptionKey);
  await Promise.all(links.map((link) => third.links.click(link, clickAt(NOW))));
  await third.close();
  t.is(await totalOf(first, organizationId), LINKS);
  await close();
});
