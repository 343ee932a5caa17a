import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Link, LinkFilter } from "../../../resources/links/types.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

// Several segments of the index, and a rest that is not in any.
const COUNT = 10_000;
const WORDS = [
  "spring sale",
  "SUMMER",
  "Grüße",
  "ÉTÉ à la Σίγμας",
  "日本語",
  "50% off",
  "snake_case",
  "back\\slash",
  "🎉 party",
];

const byId = new Map<string, Link>();
let organization: { id: string };

test.before(async () => {
  ({ organization } = await first.organizations.create("Large", "premium", OPERATOR));
  const links = await storeManyLinks(database.knex, organization.id, COUNT, (number) => ({
    url: `https://shop.example/items/${(number * 7919) % COUNT}?ref=${number % 13}`,
    title: number % 3 === 0 ? `${WORDS[number % WORDS.length]} ${number}` : null,
    tags: number % 5 === 0 ? ["news", `tag-${number % 50}`] : [],
    archived: number % 11 === 0,
  }));
  for (const link of links) byId.set(link.id, link);
});

function isMatch(link: Link, { search, tag, archived }: LinkFilter): boolean {
  const texts = [link.url, link.slug, link.title ?? ""];
  return (
    (search === undefined || texts.some((text) => lower(text).includes(lower(search)))) &&
    (tag === undefined || link.tags.includes(tag)) &&
    (archived === undefined || link.archived === archived)
  );
}

const lower = (text: string) => text.toLowerCase().replace(/ς/g, "σ");

function expected(filter: LinkFilter, limit: number, before = "z"): string[] {
  const matches = [...byId.values()].filter((link) => link.id < before && isMatch(link, filter));
  return matches
    .map(({ id }) => id)
    .sort()
    .reverse()
    .slice(0, limit);
}

async function found(filter: LinkFilter, limit: number, before?: string): Promise<string[]> {
  const page = await first.links.list(organization.id, filter, limit, before);
  if (page === "timeout") throw new Error("the search timed out");
  return page.map(({ id }) => id);
}

const FILTERS: LinkFilter[] = [
  { search: "https://" },
  { search: "items/7919" },
  { search: "ITEMS/12" },
  { search: "summer" },
  { search: "Grüße" },
  { search: "GRÜ" },
  { search: "gru" },
  { search: "été À LA" },
  { search: "Été" },
  { search: "é" },
  { search: "ΣΊΓΜΑΣ" },
  { search: "e.example/itemsshop.example" },
  { search: "日é" },
  { search: "日本語" },
  { search: "本" },
  { search: "🎉 p" },
  { search: "50%" },
  { search: "e_c" },
  { search: "k\\s" },
  { search: "f=" },
  { search: "zq" },
  { search: "x" },
  { search: "matches no link" },
  { search: "sale 9000" },
  { tag: "news" },
  { tag: "tag-45" },
  { tag: "tag" },
  { archived: true },
  { archived: false },
  { search: "été", archived: true },
  { search: "spring", tag: "news", archived: true },
  { search: "summer", tag: "tag-25" },
];

async function compareAll(assert: (actual: string[], wanted: string[], filter: string) => void) {
  const middle = oldLinkId(COUNT / 2);
  for (const filter of FILTERS) {
    for (const before of [undefined, middle, oldLinkId(3), "lnk_00"]) {
      const wanted = expected(filter, 30, before);
      assert(await found(filter, 30, before), wanted, `${JSON.stringify(filter)} before ${before}`);
    }
  }
}

const segments = () => database.knex("link_search_segments").where({ organization_id: organization.id });

test.serial("a search without an index finds the same links as comparing all of them", async (t) => {
  const all = expected({ search: "shop" }, COUNT);
  t.deepEqual(await found({ search: "shop" }, COUNT), all);
  await first.linksIndexed();
});

test.serial("a search of many links has them indexed, by one process only", async (t) => {
  await atOnce(4, (index) =>
    (index % 2 ? first : second).links.list(organization.id, { search: "absent" }, 10),
  );
  await Promise.all([first.linksIndexed(), second.linksIndexed()]);
  const stored = await segments().orderBy("after_id");
  t.true(stored.length >= 2);
  t.is(stored[0]?.after_id, "");
  t.deepEqual(
    stored.slice(1).map(({ after_id }) => after_id),
    stored.slice(0, -1).map(({ last_id }) => last_id),
  );
});

test.serial(
  "a search with an index finds the same links as comparing all of them, on every page",
  async (t) => {
    await compareAll((actual, wanted, filter) => t.deepEqual(actual, wanted, filter));
  },
);

test.serial("a rare text in an indexed organization is found without reading all links", async (t) => {
  const statements: string[] = [];
  const stop = first.onStatement((sql) => statements.push(sql));
  t.is((await found({ search: "items/7919?" }, 30)).length, 1);
  stop();
  const ranges = statements.filter((sql) => /like/.test(sql) && !/.id. in \(/.test(sql));
  t.is(ranges.length, 1, "only the newest links are read without the index");
});

test.serial("the ids of a segment are read only if a link of it has all sequences of the text", async (t) => {
  const statements: string[] = [];
  const stop = first.onStatement((sql) => statements.push(sql));
  // Links have the first sequences that are looked up, such as "sna" and "000", but not the others.
  t.deepEqual(await found({ search: "snake_case 1000" }, 30), []);
  stop();
  t.deepEqual(
    statements.filter((sql) => /link_ids/.test(sql)),
    [],
  );
});

test.serial("a link is found by its new text after a change, and not by the old one", async (t) => {
  const link = byId.get(oldLinkId(17)) as Link;
  const changes = { title: "renamed Zebra", url: "https://moved.example/here", tags: ["moved"] };
  const updated = await second.links.update(organization.id, link.id, changes, OPERATOR);
  byId.set(link.id, updated as Link);
  t.deepEqual(await found({ search: "zebra" }, 10), [link.id]);
  t.deepEqual(await found({ search: "moved.example" }, 10), [link.id]);
  t.deepEqual(await found({ tag: "moved" }, 10), [link.id]);
  t.deepEqual(await found({ search: `${new URL(link.url).pathname.slice(1)}?` }, 10), []);
});

test.serial("a deleted link is not found", async (t) => {
  const id = oldLinkId(21);
  const title = byId.get(id)?.title as string;
  t.true((await found({ search: title }, 500)).includes(id));
  await first.links.remove(organization.id, id, OPERATOR);
  byId.delete(id);
  t.false((await found({ search: title }, 500)).includes(id));
});

test.serial("a link that a retried request creates among indexed links is found", async (t) => {
  const id = `${oldLinkId(4000).slice(0, -1)}Z`;
  const fields = linkFields({ slug: "created-late", title: "late arrival" });
  byId.set(id, (await first.links.create(organization.id, OPERATOR, fields, id)) as Link);
  t.deepEqual(await found({ search: "late arr" }, 10), [id]);
});

test.serial("segments with many changed links are indexed again, and searches stay exact", async (t) => {
  const before = await segments().pluck("id");
  const changed = Array.from({ length: 120 }, (_, index) => oldLinkId(index * 3 + 100));
  await Promise.all(
    changed.map(async (id, index) => {
      const fields = { title: `changed number ${index}` };
      byId.set(id, (await first.links.update(organization.id, id, fields, OPERATOR)) as Link);
    }),
  );
  t.is((await found({ search: "changed number" }, 200)).length, 120);
  await first.linksIndexed();
  const after = await segments().pluck("id");
  t.is(after.length, before.length);
  t.is(after.filter((id) => !before.includes(id)).length, 1, "one segment was replaced");
  const marks = await database.knex("link_search_changes").where({ organization_id: organization.id });
  t.deepEqual(marks, [], "all changes are indexed");
  const grams = await database.knex("link_search_grams").countDistinct({ segments: "segment_id" });
  t.is(Number(grams[0]?.segments), after.length);
  await compareAll((actual, wanted, filter) => t.deepEqual(actual, wanted, filter));
});

test.serial(
  "searches stay exact and their statements bounded while more links are marked than are compared",
  async (t) => {
    const marked = Array.from({ length: 7000 }, (_, number) => ({
      organization_id: organization.id,
      link_id: oldLinkId(number + 500),
      version: 99,
    }));
    for (let start = 0; start < marked.length; start += 500) {
      await database.knex("link_search_changes").insert(marked.slice(start, start + 500));
    }
    const statements: string[] = [];
    const stop = second.onStatement((sql) => statements.push(sql));
    const page = await second.links.list(organization.id, { search: "matches no link" }, 10);
    stop();
    t.deepEqual(page, []);
    const unbounded = statements.filter(
      (sql) => /^select .*link_search_changes/.test(sql) && !/ limit /.test(sql),
    );
    t.deepEqual(unbounded, []);
    await compareAll((actual, wanted, filter) => t.deepEqual(actual, wanted, filter));
    await Promise.all([first.linksIndexed(), second.linksIndexed()]);
    await compareAll((actual, wanted, filter) => t.deepEqual(actual, wanted, filter));
  },
);

test.serial("another organization's links are never found", async (t) => {
  const { organization: other } = await first.organizations.create("Other", "growth", OPERATOR);
  t.deepEqual(await first.links.list(other.id, { search: "https" }, 10), []);
});
