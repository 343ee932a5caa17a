import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { CREATE_SEARCH_INDEX } from "../../../adapters/database/migrations/0005_links.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Link, LinkFilter } from "../../../resources/links/types.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

// Several pieces of a scan.
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

const PAGES = [undefined, oldLinkId(COUNT / 2), oldLinkId(3), "lnk_00"];

async function compareAll(t: ExecutionContext, pages = PAGES) {
  for (const filter of FILTERS) {
    for (const before of pages) {
      const wanted = expected(filter, 30, before);
      t.deepEqual(await found(filter, 30, before), wanted, `${JSON.stringify(filter)} before ${before}`);
    }
  }
}

test.serial("a search finds the same links as comparing all of them, on every page", async (t) => {
  const all = expected({ search: "shop" }, COUNT);
  t.deepEqual(await found({ search: "shop" }, COUNT), all);
  await compareAll(t);
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

test.serial("a link that a retried request creates among older links is found", async (t) => {
  const id = `${oldLinkId(4000).slice(0, -1)}Z`;
  const fields = linkFields({ slug: "created-late", title: "late arrival" });
  byId.set(id, (await first.links.create(organization.id, OPERATOR, fields, id)) as Link);
  t.deepEqual(await found({ search: "late arr" }, 10), [id]);
});

test.serial("changed links are found by comparing all of them", async (t) => {
  const changed = Array.from({ length: 120 }, (_, index) => oldLinkId(index * 3 + 100));
  await Promise.all(
    changed.map(async (id, index) => {
      const fields = { title: `changed number ${index}` };
      byId.set(id, (await first.links.update(organization.id, id, fields, OPERATOR)) as Link);
    }),
  );
  t.is((await found({ search: "changed number" }, 200)).length, 120);
  await compareAll(t, [undefined]);
});

test.serial("another organization's links are never found", async (t) => {
  const { organization: other } = await first.organizations.create("Other", "growth", OPERATOR);
  t.deepEqual(await first.links.list(other.id, { search: "https" }, 10), []);
});

if (engine === "postgres") {
  test.serial("a rare text is found with the index on PostgreSQL, without comparing all links", async (t) => {
    t.true(await first.hasSearchIndex());
    const statements: string[] = [];
    const stop = first.onStatement((sql) => statements.push(sql));
    t.is((await found({ search: "items/7919?" }, 30)).length, 1);
    stop();
    t.is(statements.filter((sql) => /strpos/.test(sql)).length, 1, "only the newest links are compared");
    t.is(statements.filter((sql) => / like /.test(sql)).length, 1);
  });

  test.serial("a database that may not have the extensions is searched without the index", async (t) => {
    const limited = await createTestDatabase({ empty: true });
    const role = new URL(limited.url).pathname.slice(1);
    await database.knex.raw("create role ??", [role]);
    t.teardown(() => database.knex.raw("drop role ??", [role]));
    t.teardown(limited.drop);
    const owner = openDatabase(limited.url);
    t.teardown(owner.close);
    await owner.knex.raw("grant create, usage on schema public to ??", [role]);
    const url = new URL(limited.url);
    url.searchParams.set("options", `-c role=${role}`);
    const searched = openStorage(url.href, storage.encryptionKey);
    t.teardown(searched.close);
    await searched.migrate();
    t.false(await searched.hasSearchIndex());
    const { id } = (await searched.organizations.create("Scanned", "growth", OPERATOR)).organization;
    const links = await storeManyLinks(owner.knex, id, 4100, (number) => ({ title: `link ${number}` }));
    const search = () => searched.links.list(id, { search: "LINK 12" }, 1, oldLinkId(50));
    t.deepEqual(await search(), [links.find(({ title }) => title === "link 12")] as Link[]);

    for (const statement of CREATE_SEARCH_INDEX) await owner.knex.raw(statement);
    t.true(await searched.hasSearchIndex());
  });

  test.serial("a search without the index on PostgreSQL finds the same links", async (t) => {
    await database.knex.raw("drop index links_search");
    await compareAll(t, [undefined]);
  });
}
