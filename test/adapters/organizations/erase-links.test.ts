import test from "ava";
import { SEGMENT_LINKS } from "../../../adapters/links/search/indexer.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";

const { first, second, database, close } = await createTestStorage();
const { knex } = database;
test.after.always(() => close());

const COUNT = SEGMENT_LINKS + 900;
const INDEX_TABLES = ["link_search_segments", "link_search_grams", "link_search_changes"] as const;
const CONTENT = { title: "a secret title", tags: ["secret"], metadata: { secret: "yes" } };

/** Stores an organization with many links, indexed, one of which has changed since. */
async function createIndexed(): Promise<string> {
  const { organization } = await first.organizations.create("Large", "premium", OPERATOR);
  const { id } = organization;
  const prefix = (number: number) => `${id.slice(-8)}-external-${number}`;
  await storeManyLinks(knex, id, COUNT, (number) => ({ ...CONTENT, externalId: prefix(number) }));
  const counted = { links: COUNT, max_links: COUNT };
  await knex("organization_usage").where({ organization_id: id, slot: 0 }).update(counted);
  await first.indexLinks();
  await first.linksIndexed();
  await first.links.update(id, oldLinkId(7), { title: "another secret title" }, OPERATOR);
  return id;
}

const rowsOf = (table: (typeof INDEX_TABLES)[number] | "links" | "organization_usage", id: string) =>
  knex(table).where({ organization_id: id });
const contentOf = (id: string) =>
  rowsOf("links", id).where((content) =>
    content
      .whereNotNull("title")
      .orWhereNotNull("external_id")
      .orWhereNot({ tags: "" })
      .orWhereNot({ metadata: "{}" }),
  );

test.serial("the content of a deleted organization's links is erased, and no other", async (t) => {
  const id = await createIndexed();
  const { organization: other } = await first.organizations.create("Kept", "premium", OPERATOR);
  const fields = linkFields({ slug: "kept", ...CONTENT, externalId: "kept" });
  const kept = await first.links.create(other.id, OPERATOR, fields);
  for (const table of INDEX_TABLES) t.true((await rowsOf(table, id)).length > 0, table);
  await first.organizations.remove(id, OPERATOR);

  await first.purgeExpired();
  t.is((await contentOf(id)).length, COUNT, "requests that write a link may not have ended yet");

  advanceClock(61_000);
  const stopping = new AbortController();
  const stop = second.onStatement((sql) => /^update .links/.test(sql) && stopping.abort());
  await second.purgeExpired(stopping.signal);
  stop();
  const left = (await contentOf(id)).length;
  t.true(left > 0 && left < COUNT, "a purge that is stopped ends after a batch");

  await first.purgeExpired();
  t.deepEqual(await contentOf(id), []);
  for (const table of [...INDEX_TABLES, "organization_usage" as const])
    t.deepEqual(await rowsOf(table, id), [], table);
  t.is((await rowsOf("links", id).whereNotNull("deleted_at")).length, COUNT);
  if (!("id" in kept)) return t.fail();
  t.like(await first.links.find(other.id, kept.id), { ...CONTENT, externalId: "kept" });

  const slug = `${id.slice(-8)}-5`;
  const created = await first.links.create(other.id, OPERATOR, linkFields({ slug }));
  t.false("id" in created, "its slug is never reused");
});

test.serial("an erased organization costs later purges no writes", async (t) => {
  const statements: string[] = [];
  t.teardown(first.onStatement((sql) => statements.push(sql)));
  await first.purgeExpired();
  t.deepEqual(
    statements.filter((sql) => /^(update|delete from) .(links|link_search|organization_usage)/.test(sql)),
    [],
  );
});
