import test, { type ExecutionContext } from "ava";
import { SEGMENT_LINKS } from "../../../adapters/links/search/indexer.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage, type TestStorage } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

const COUNT = 3 * SEGMENT_LINKS + 10;

/** Opens a database with an organization of many links, which was never searched. */
async function createLarge(t: ExecutionContext, count = COUNT) {
  const storage = await createTestStorage();
  t.teardown(() => storage.close());
  const { first, database } = storage;
  const { organization } = await first.organizations.create("Large", "premium", OPERATOR);
  const newest = await storeManyLinks(database.knex, organization.id, count, (number) => ({
    url: `https://shop.example/items/${number}`,
  }));
  const counted = { links: count, max_links: count };
  await database
    .knex("organization_usage")
    .where({ organization_id: organization.id, slot: 3 })
    .update(counted);
  return { storage, organizationId: organization.id, oldest: newest.at(-1)?.id as string };
}

const segmentsOf = ({ database }: TestStorage, organization_id: string) =>
  database.knex("link_search_segments").where({ organization_id }).orderBy("after_id");

async function isIndexedOnce(t: ExecutionContext, storage: TestStorage, organizationId: string) {
  const stored = await segmentsOf(storage, organizationId);
  const ids = stored.flatMap(({ link_ids }) => link_ids.split(","));
  t.true(ids.length > COUNT - SEGMENT_LINKS);
  t.is(new Set(ids).size, ids.length);
  t.is(stored[0]?.after_id, "");
  t.deepEqual(
    stored.slice(1).map(({ after_id }) => after_id),
    stored.slice(0, -1).map(({ last_id }) => last_id),
  );
}

test.serial("links are indexed before the first search, which then uses the index", async (t) => {
  const { storage, organizationId, oldest } = await createLarge(t);
  const { first, second } = storage;
  await Promise.all([first.indexLinks(), second.indexLinks()]);
  await Promise.all([first.linksIndexed(), second.linksIndexed()]);
  await isIndexedOnce(t, storage, organizationId);

  const statements: string[] = [];
  t.teardown(first.onStatement((sql) => statements.push(sql)));
  const found = await first.links.list(organizationId, { search: "items/0" }, 10);
  t.deepEqual(found === "timeout" ? found : found.map(({ id }) => id), [oldest]);
  const ranges = statements.filter((sql) => /like/.test(sql) && !/.id. in \(/.test(sql));
  t.is(ranges.length, 1, "only the newest links are read without the index");
});

test.serial("a running server indexes links without being asked", async (t) => {
  const { storage, organizationId } = await createLarge(t);
  const service = await startTestService({
    DATABASE_URL: storage.url,
    ENCRYPTION_KEY: storage.encryptionKey.toString("base64url"),
  });
  t.teardown(() => service.close());
  await new Promise<void>((resolve) => {
    t.teardown(
      service.storage.onStatement((sql) => /^insert into .link_search_segments/.test(sql) && resolve()),
    );
  });
  await service.storage.linksIndexed();
  await isIndexedOnce(t, storage, organizationId);
});

test.serial("after a process stopped while it was indexing, another one continues", async (t) => {
  const { storage, organizationId } = await createLarge(t);
  const { first, second } = storage;
  const isIndexing = new Promise<void>((resolve) => {
    first.onStatement((sql) => /^insert into .link_search_segments/.test(sql) && resolve());
  });
  await first.indexLinks();
  await isIndexing;
  await first.close();
  const before = await segmentsOf(storage, organizationId).pluck("id");
  t.is(before.length, 1);
  await second.indexLinks();
  await second.linksIndexed();
  await isIndexedOnce(t, storage, organizationId);
  t.true((await segmentsOf(storage, organizationId).pluck("id")).includes(before[0] as string));
});

test.serial("a few links, and those of a deleted organization, are not indexed", async (t) => {
  const small = await createLarge(t, 100);
  await small.storage.first.indexLinks();
  await small.storage.first.linksIndexed();
  t.deepEqual(await segmentsOf(small.storage, small.organizationId), []);

  const { storage, organizationId } = await createLarge(t, SEGMENT_LINKS + 1);
  await storage.first.organizations.remove(organizationId, OPERATOR);
  await storage.first.indexLinks();
  await storage.first.linksIndexed();
  t.deepEqual(await segmentsOf(storage, organizationId), []);
});
