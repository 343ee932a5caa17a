import test, { type ExecutionContext } from "ava";
import type { Knex } from "knex";
import { CREATE_SEARCH_INDEX } from "../../../adapters/database/migrations/links.ts";
import { openStorage } from "../../../adapters/index.ts";
import { createSearch } from "../../../adapters/links/search.ts";
import type { Boundary, Link, LinkFilter, LinkSort, ListPart } from "../../../resources/links/types.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage, linkFields, OPERATOR } from "../../harness/database/storage.ts";
import { createTestDatabase, engine, inspect } from "../../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database, knex, createOrganization } = storage;

// Two pieces of a scan.
const COUNT = 5_000;
const WORDS = [
  ...["spring sale", "SUMMER", "Grüße", "Grüße".normalize("NFD"), "ÉTÉ à la Σίγμας", "日本語 각", "50% off"],
  ...["50 off", "snake_case", "back\\slash", "🎉 party", `it's "quoted"`],
];
const TAGS = [
  ...["50%", "500", "a_b", "axb", "News", "news ", 'say "hi"', 'x"y', "a,b", "back\\slash", "ü", "日本"],
  ...["[]", "🎉".repeat(50)],
];

const SAME_URL = `https://same.example/${"a".repeat(300)}`;
// As long, and different at its end or in the case of its letters.
const urlOf = (number: number) =>
  [SAME_URL, SAME_URL, `${SAME_URL.slice(0, -1)}b`, SAME_URL.replace("same", "SAME")][number % 4] as string;

const byId = new Map<string, Link>();
let organizationId = "";

test.before(async () => {
  organizationId = await createOrganization("premium");
  const links = await storeManyLinks(knex, organizationId, COUNT, (number) => ({
    url: `https://shop.example/items/${(number * 7919) % COUNT}?ref=${number % 13}`,
    ...(number >= 40 && number < 60 && { slug: `same-${number}`, url: urlOf(number) }),
    title: number % 3 === 0 ? `${WORDS[(number / 3) % WORDS.length]} ${number}` : null,
    tags: number % 5 === 0 ? ["news", `tag-${number % 50}`, TAGS[(number / 5) % TAGS.length] as string] : [],
    archived: number % 11 === 0,
    externalId: number % 7 === 0 ? `own ${number}` : null,
    clicks: (number * 31) % 200,
    lastClickedAt: number % 200 === 0 ? null : Date.UTC(2030, 0, number % 28),
  }));
  for (const link of links) byId.set(link.id, link);
  // As the server does by itself within a minute.
  if (engine === "postgres") await knex.raw("analyze links");
});

function isMatch(link: Link, { search, tag, archived, ...exact }: LinkFilter): boolean {
  const texts = [link.url, link.slug, link.title ?? ""];
  return (
    (search === undefined || texts.some((text) => lower(text).includes(lower(search)))) &&
    (tag === undefined || link.tags.includes(tag)) &&
    (archived === undefined || link.archived === archived) &&
    Object.entries(exact).every(([name, value]) => link[name as keyof Link] === value)
  );
}

const lower = (text: string) => text.normalize("NFC").toLowerCase().replace(/ς/g, "σ");

const sortedValue = ({ clicks, lastClickedAt }: Link, sort: LinkSort) =>
  ({ created_at: 0, clicks, last_clicked_at: lastClickedAt ?? 0 })[sort];

function expected(filter: LinkFilter, limit: number, part: ListPart = {}): string[] {
  const { sort = "created_at", from, isAscending } = part;
  const isBelow = (link: Link, { value, id }: Boundary) =>
    sortedValue(link, sort) < value || (sortedValue(link, sort) === value && link.id < id);
  const matches = [...byId.values()]
    .filter((link) => isMatch(link, filter) && (!from || isBelow(link, from) === !isAscending))
    .sort((one, other) => (isBelow(one, { id: other.id, value: sortedValue(other, sort) }) ? 1 : -1))
    .map(({ id }) => id);
  return (isAscending ? matches.reverse() : matches).slice(0, limit);
}

const below = (id: string): ListPart => ({ from: { id, value: 0 } });

async function found(filter: LinkFilter, limit: number, part?: ListPart): Promise<string[]> {
  const page = await first.links.list(organizationId, filter, limit, part);
  if (page === "timeout") throw new Error("the search timed out");
  return page.map(({ id }) => id);
}

const SEARCHES = [
  ...["https://", "items/2919", "summer", "Grüße", "gru", "été À LA", "é", "ΣΊΓΜΑΣ", "日本語", "🎉 p", "50%"],
  ...["e.example/itemsshop.example", "e_c", "k\\s", "f=", "zq", "matches no link", "sale 4500", "%", "_"],
  ...["grüße".normalize("NFD"), "각".normalize("NFD"), "it's", '"quoted"', "\\%", "' or 1=1 --", "*"],
];
const FILTERS: LinkFilter[] = [
  ...SEARCHES.map((search) => ({ search })),
  ...[...TAGS, "hi", "y", "a"].map((tag) => ({ tag })),
  { tag: "news" },
  { tag: "tag-45" },
  { tag: "tag" },
  { archived: true },
  { search: "été", archived: true },
  { search: "spring", tag: "news", archived: true },
  { search: "summer", tag: "tag-25" },
];

const EXACT: LinkFilter[] = [
  { url: SAME_URL },
  { url: SAME_URL.toUpperCase() },
  { url: `${SAME_URL}?` },
  { url: SAME_URL, archived: true },
  { url: "https://shop.example/items/2919?ref=1" },
  { slug: "same-44" },
  { slug: "SAME-44" },
  { externalId: "own 700" },
  { externalId: "OWN 700" },
];

const PAGES = [{}, below(oldLinkId(COUNT / 2)), below(oldLinkId(3)), below("lnk_00")];

async function compareAll(t: ExecutionContext, parts: ListPart[] = PAGES, filters = FILTERS) {
  for (const filter of filters)
    for (const part of parts)
      t.deepEqual(await found(filter, 30, part), expected(filter, 30, part), JSON.stringify([filter, part]));
}

// More links have the first value of clicks than a page shows, and the last one is that of links without clicks.
const SORTED: ListPart[] = (["clicks", "last_clicked_at"] as const).flatMap((sort) =>
  [undefined, 7, Date.UTC(2030, 0, 14), 0].map((value) => ({
    sort,
    from: value === undefined ? value : { id: oldLinkId(COUNT / 2), value },
  })),
);
const BACKWARD = [...PAGES, ...SORTED].map((part) => ({ ...part, isAscending: true }));
const SOME = [{}, ...FILTERS.slice(0, 3), ...FILTERS.slice(-4)];

const COMPARED: Record<string, [parts: ListPart[], filters: LinkFilter[]]> = {
  "a search finds the same links as comparing all of them": [PAGES, FILTERS],
  "a sorted search finds the same links as sorting all of them": [SORTED, SOME],
  "a list read backward has the links above its boundary, the closest one first": [BACKWARD, SOME],
  "exact filters find the same links as comparing all of them": [
    [{}, below(oldLinkId(50)), { isAscending: true }, { sort: "clicks", isAscending: true }],
    EXACT,
  ],
};

for (const [title, [parts, filters]] of Object.entries(COMPARED))
  test.serial(`${title}, on every page`, (t) => compareAll(t, parts, filters));

const searchWith = (before: (query: Knex.QueryBuilder) => Promise<void>) =>
  createSearch({
    ...database,
    async readAside(query, timeoutMs) {
      await before(query);
      return database.readAside(query, timeoutMs);
    },
  });

test.serial("an exact filter is looked up in an index", async (t) => {
  const explain = engine === "sqlite" ? "explain query plan" : "explain";
  for (const [index, filter] of Object.entries({
    links_url: { url: SAME_URL },
    address: { slug: "same-44" },
    external_id: { externalId: "own 700" },
  })) {
    const plans: string[] = [];
    const search = searchWith(async (query) => {
      plans.push(JSON.stringify(await knex.raw(`${explain} ${query.toQuery()}`)));
    });
    await search.findRows(organizationId, filter, 26, {});
    t.true(plans[0]?.includes(index), plans[0]);
  }
});

test.serial("only the ids are listed, of links that existed at a time, and up to a limit", async (t) => {
  for (const filter of SOME) {
    const all = expected(filter, COUNT);
    const listed = (limit: number, createdBefore?: number) =>
      first.links.listIds(organizationId, { ...filter, createdBefore }, limit);
    t.deepEqual(await listed(COUNT, Date.now()), { ids: all, isComplete: true });
    t.deepEqual(await listed(COUNT, 1), { ids: [], isComplete: true });
    t.like(await listed(7), { ids: all.slice(0, 7) });
  }
});

test.serial("a list of ids says that it ended before all links were compared", async (t) => {
  // MariaDB compares all links in one piece.
  const compared = engine === "mysql" ? COUNT : 4000;
  for (const filter of SOME) {
    const found = await first.links.listIds(organizationId, filter, COUNT, 4000);
    const newest = expected(filter, COUNT).filter((id) => id >= oldLinkId(COUNT - compared));
    t.deepEqual(found, { ids: newest, isComplete: compared === COUNT }, JSON.stringify(filter));
  }
});

test.serial("a sorted link shows the value by which it was sorted", async (t) => {
  for (const sort of ["clicks", "last_clicked_at"] as const) {
    const links = expected({}, COUNT, { sort }).map((id) => byId.get(id) as Link);
    t.deepEqual(await first.links.list(organizationId, {}, COUNT, { sort }), links);
  }
});

test.serial("a link that is deleted during a search is replaced by the next one", async (t) => {
  const [doomed = "", ...others] = expected({}, 4, { sort: "clicks" });
  const search = searchWith(async (query) => {
    const readsLinks = / in \(/.test(query.toString());
    if (readsLinks && byId.delete(doomed)) await first.links.remove(organizationId, doomed, OPERATOR);
  });
  const rows = await search.findRows(organizationId, {}, 3, { sort: "clicks" });
  t.is(rows.map(({ id }) => id).join(), others.join());
});

test.serial("a link is found by its new text, not by the old one, and not once it is deleted", async (t) => {
  const link = byId.get(oldLinkId(17)) as Link;
  const changes = { title: "renamed Zebra", url: "https://moved.example/here", tags: ["moved"] };
  await second.links.update(organizationId, link.id, changes, OPERATOR);
  byId.delete(link.id);
  const filters: LinkFilter[] = [{ search: "zebra" }, { search: "moved.example" }, { tag: "moved" }];
  const findAll = () => Promise.all(filters.map((filter) => found(filter, 10)));
  t.deepEqual(await findAll(), Array(3).fill([link.id]));
  t.deepEqual(await found({ search: `${new URL(link.url).pathname.slice(1)}?` }, 10), []);
  await first.links.remove(organizationId, link.id, OPERATOR);
  t.deepEqual(await findAll(), Array(3).fill([]));
});

test.serial("a link that a retried request creates among older links is found", async (t) => {
  const id = `${oldLinkId(4000).slice(0, -1)}Z`;
  const fields = linkFields({ slug: "created-late", title: "late arrival" });
  byId.set(id, (await first.links.create(organizationId, OPERATOR, fields, id)) as Link);
  t.deepEqual(await found({ search: "late arr" }, 10), [id]);
});

test.serial("another organization's links are never found", async (t) => {
  t.deepEqual(await first.links.list(await createOrganization(), { search: "https" }, 10), []);
});

if (engine === "postgres") {
  test.serial("a rare text is found with the index on PostgreSQL, without comparing all links", async (t) => {
    t.true(await first.hasSearchIndex());
    const statements: string[] = [];
    const stop = first.onStatement((sql) => statements.push(sql));
    t.is((await found({ search: "items/2919?" }, 30)).length, 1);
    stop();
    t.is(statements.filter((sql) => /strpos/.test(sql)).length, 1, "only the newest links are compared");
    t.is(statements.filter((sql) => / like /.test(sql)).length, 1);
  });

  test.serial("a database that may not have the extensions is searched without the index", async (t) => {
    const limited = await createTestDatabase({ empty: true });
    const role = new URL(limited.url).pathname.slice(1);
    await knex.raw("create role ??", [role]);
    const owner = inspect(limited.url);
    t.teardown(async () => {
      await owner.knex.raw("drop owned by ??", [role]);
      await knex.raw("drop role ??", [role]);
    });
    await owner.knex.raw("grant create, usage on schema public to ??", [role]);
    const url = new URL(limited.url);
    url.searchParams.set("options", `-c role=${role}`);
    const searched = openStorage(url.href, storage.encryptionKey);
    t.teardown(searched.close);
    await searched.migrate();
    t.false(await searched.hasSearchIndex());
    const { id } = (await searched.organizations.create("Scanned", "growth", OPERATOR)).organization;
    const links = await storeManyLinks(owner.knex, id, 100, (number) => ({ title: `link ${number}` }));
    const search = () => searched.links.list(id, { search: "LINK 12" }, 1, below(oldLinkId(50)));
    t.deepEqual(await search(), [links.find(({ title }) => title === "link 12")] as Link[]);

    for (const statement of CREATE_SEARCH_INDEX) await owner.knex.raw(statement);
    t.true(await searched.hasSearchIndex());
  });

  test.serial("a search without the index on PostgreSQL finds the same links", async (t) => {
    await knex.raw("drop index links_search");
    await compareAll(t, [{}]);
  });
}
