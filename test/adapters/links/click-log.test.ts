import test from "ava";
import { copyDatabase } from "../../../adapters/copy/index.ts";
import type { Database } from "../../../adapters/database/index.ts";
import { createLeases } from "../../../adapters/database/leases.ts";
import { openStorage, type Storage } from "../../../adapters/index.ts";
import { createClickFold } from "../../../adapters/links/click-fold.ts";
import { createClickLog } from "../../../adapters/links/click-log.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { LinkChanges, ResolvedLink } from "../../../resources/links/types.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, clickAt, createTestStorage } from "../../harness/database/storage.ts";
import { createTestDatabase, engine, serverOf } from "../../harness/database/test-database.ts";

// More than a flush counts directly in the links, and more than one batch of a fold.
const LINKS = 450;
const NOW = Date.parse("2030-06-15T12:00:00Z");
const always = async () => true;
const noLeases = { acquire: always, release: async () => {} };

/** Opens a database of its own with many links, so nothing else folds the clicks. */
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
async function clickAll({ links: store }: Pick<Storage, "links">, links: ResolvedLink[], at = NOW) {
  await atOnce(links.length, (index) => store.click(links[index] as ResolvedLink, clickAt(at)));
  await store.find(links[0]?.organizationId as string, links[0]?.id as string);
}

async function totalOf({ links }: Pick<Storage, "links">, organizationId: string) {
  const found = await links.list(organizationId, {}, LINKS);
  return found === "timeout" ? found : found.reduce((sum, { clicks }) => sum + clicks, 0);
}

const logged = async ({ knex }: Database) => (await knex("click_log")).length;
const counted = async ({ knex }: Database) => {
  const [row] = await knex("links").sum({ clicks: "clicks" });
  return Number(row?.clicks);
};

if (engine === "sqlite") {
  test("SQLite: clicks on many links are in every answer before they are counted in the links", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    const [{ id, slug }] = links as [ResolvedLink];
    // As long as another process folds, these two don't.
    await createLeases(database).acquire("click-fold", 600_000);
    await clickAll(first, links);
    await clickAll(first, links, NOW + 1000);
    t.deepEqual([await logged(database), await counted(database)], [2 * LINKS, 0]);
    const expected = { clicks: 2, lastClickedAt: NOW + 1000 };
    for (const storage of [first, second]) {
      t.like(await storage.links.find(organizationId, id), expected);
      t.like((await storage.linkSwitches.find(slug))?.link, expected);
      const filters = [{}, { search: slug }];
      for (const filter of filters) {
        const [link] = (await storage.links.list(organizationId, filter, 1)) as [object];
        t.like(link, expected);
      }
      t.is(await totalOf(storage, organizationId), 2 * LINKS);
    }
    t.like(await first.links.update(organizationId, id, { title: "Clicked" }, OPERATOR), expected);
    t.like(await first.linkSwitches.disable(id, null, OPERATOR), expected);
    t.true(await second.links.remove(organizationId, id, OPERATOR));
    const [deleted] = await database
      .knex("events")
      .where({ type: "link.deleted", organization_id: organizationId });
    t.is(JSON.parse(deleted?.data as string).link.clicks, 2);
    await close();
  });

  test("SQLite: a fold counts each click once, wherever it stops", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    await clickAll(first, links);
    let total = LINKS;
    for (let steps = 0; (await logged(database)) > 0; steps++) {
      let left = steps;
      await createClickLog(database, noLeases).fold(async () => left-- > 0);
      t.is(await totalOf(second, organizationId), total);
      if (steps < 4) {
        await clickAll(second, links);
        total += LINKS;
        t.is(await totalOf(first, organizationId), total);
      }
    }
    t.is(await counted(database), total);
    t.deepEqual(await database.knex.raw("select * from click_fold"), []);
    await close();
  });

  test("SQLite: concurrent folds count each click once", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    const rounds = 5;
    const logs = [createClickLog(database, noLeases), createClickLog(database, noLeases)];
    for (let round = 1; round <= rounds; round++) {
      // Without a lease, so both fold the same clicks.
      const folds = logs.map(({ fold }) => fold(always));
      await Promise.all([clickAll(first, links), clickAll(second, links), ...folds]);
      t.is(await totalOf(first, organizationId), 2 * round * LINKS);
    }
    await first.purgeExpired();
    t.deepEqual([await logged(database), await counted(database)], [0, 2 * rounds * LINKS]);
    await close();
  });

  test("SQLite: batches are merged without losing a click, wherever that stops", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    await createLeases(database).acquire("click-fold", 600_000);
    const { merge } = createClickFold(database);
    const half = links.slice(0, LINKS / 2);
    const last = NOW + 5000;
    for (let at = NOW; at < last; at += 1000) await clickAll(at % 2000 ? first : second, half, at);
    await clickAll(first, links, last);
    const total = 5 * half.length + LINKS;
    for (let steps = 0; steps < 4; steps++) {
      let left = steps;
      await merge(async () => left-- > 0);
      t.is(await totalOf(second, organizationId), total);
    }
    t.deepEqual([await logged(database), await counted(database)], [LINKS, 0]);
    const [one, other] = [half[0], links.at(-1)] as [ResolvedLink, ResolvedLink];
    t.like(await first.links.find(organizationId, one.id), { clicks: 6, lastClickedAt: last });
    t.like(await first.links.find(organizationId, other.id), { clicks: 1, lastClickedAt: last });
    await createClickLog(database, noLeases).fold(always);
    t.deepEqual([await logged(database), await counted(database)], [0, total]);
    t.like(await second.links.find(organizationId, one.id), { clicks: 6, lastClickedAt: last });
    await close();
  });

  test("SQLite: a merge changes nothing once a fold has begun", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    await createLeases(database).acquire("click-fold", 600_000);
    const { merge } = createClickFold(database);
    for (const storage of [first, second]) await clickAll(storage, links);
    let steps = 1;
    await createClickLog(database, noLeases).fold(async () => steps-- > 0);
    await clickAll(first, links);
    const before = await database.knex("click_log");
    await merge(always);
    t.deepEqual(await database.knex("click_log"), before);
    t.is(await totalOf(first, organizationId), 3 * LINKS);
    await close();
  });

  test("SQLite: concurrent merges and folds count each click once", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    const rounds = 10;
    const { merge } = createClickFold(database);
    const { fold } = createClickLog(database, noLeases);
    for (let round = 1; round <= rounds; round++) {
      const moves = [merge(always), merge(always), ...(round % 3 ? [] : [fold(always)])];
      await Promise.all([clickAll(first, links), clickAll(second, links), ...moves]);
      t.is(await totalOf(first, organizationId), 2 * round * LINKS);
    }
    await first.purgeExpired();
    t.deepEqual([await logged(database), await counted(database)], [0, 2 * rounds * LINKS]);
    await close();
  });

  test("SQLite: a new limit of clicks includes those that are not counted in the link yet", async (t) => {
    const { first, second, database, organizationId, links, close } = await openLinks();
    const [{ id, slug }] = links as [ResolvedLink];
    await clickAll(first, links);
    await clickAll(first, links);
    const changes: LinkChanges = { maxClicks: 3 };
    t.like(await second.links.update(organizationId, id, changes, OPERATOR), { clicks: 2, maxClicks: 3 });
    const link = (await first.links.resolve(slug)) as ResolvedLink;
    const accepted = await atOnce(3, () => first.links.click(link, clickAt(NOW)));
    t.is(accepted.filter(Boolean).length, 1);
    await first.purgeExpired();
    t.like(await first.links.find(organizationId, id), { clicks: 3 });
    t.is(await counted(database), 2 * LINKS + 1);
    await close();
  });

  test("SQLite: a shutdown loses no click on many links", async (t) => {
    const { first, links, organizationId, close, url, encryptionKey } = await openLinks();
    const third = openStorage(url, encryptionKey);
    await Promise.all(links.map((link) => third.links.click(link, clickAt(NOW))));
    await third.close();
    t.is(await totalOf(first, organizationId), LINKS);
    await close();
  });

  for (const other of ["sqlite", "postgres", "mysql"].filter((name) => name === "sqlite" || serverOf(name))) {
    test(`SQLite: a copy to ${other} has the clicks that were not counted in the links`, async (t) => {
      const { database, organizationId, links, close, url, encryptionKey } = await openLinks();
      // The process was killed while it folded the first clicks, so nothing folds the rest during the copy.
      const killed = createClickLog(database, noLeases);
      const clicks = new Map(links.map(({ id }) => [id, 1]));
      await killed.append(clicks, NOW);
      let steps = 2;
      await killed.fold(async () => steps-- > 0);
      await killed.append(clicks, NOW + 1000);
      await killed.stop();
      const folded = await counted(database);
      t.true(0 < folded && folded < LINKS);
      const target = await createTestDatabase({ empty: true, on: other });
      await copyDatabase(url, target.url, { onTable() {}, run: { command: "copy", arguments: [] } as never });
      const copy = openStorage(target.url, encryptionKey);
      t.is(await totalOf(copy, organizationId), 2 * LINKS);
      await copy.close();
      await target.drop();
      await close();
    });
  }
} else {
  test("clicks on many links are counted in the links", async (t) => {
    const { first, database, links, close } = await openLinks();
    await clickAll(first, links);
    t.is(await counted(database), LINKS);
    await close();
  });
}
