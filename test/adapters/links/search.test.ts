import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { CREATE_SEARCH_INDEX } from "../../../adapters/database/migrations/links.ts";
import { openStorage } from "../../../adapters/index.ts";
import { createSearch } from "../../../adapters/links/search.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Boundary, Link, LinkFilter, LinkSort, ListPart } from "../../../resources/links/types.ts";
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

const SAME_URL = `https://same.example/${"a".repeat(300)}`;
// As long, and different at its end or in the case of its letters.
const urlOf = (number: number) =>
  [SAME_URL, SAME_URL, `${SAME_URL.slice(0, -1)}b`, SAME_URL.replace("same", "SAME")][number % 4] as string;

const byId = new Map<string, Link>();
let organization: { id: string };

test.before(async () => {
  ({ organization } = await first.organizations.create("Large", "premium", OPERATOR));
  const links = await storeManyLinks(database.knex, organization.id, COUNT, (number) => ({
    ...(number >= 40 && number < 60 ? { slug: `same-${number}` } : {}),
    url:
      number >= 40 && number < 60
        ? urlOf(number)
        : `https://shop.example/items/${(number * 7919) % COUNT}?ref=${number % 13}`,
    title: number % 3 === 0 ? `${WORDS[number % WORDS.length]} ${number}` : null,
    tags: number % 5 === 0 ? ["news", `tag-${number % 50}`] : [],
    archived: number % 11 === 0,
    externalId: number % 7 === 0 ? `own ${number}` : null,
    clicks: (number * 31) % 200,
    lastClickedAt: number % 200 === 0 ? null : Date.UTC(2030, 0, number % 28),
  }));
  for (const link of links) byId.set(link.id, link);
  // As the server does by itself within a minute.
  if (engine === "postgres") await database.knex.raw("analyze links");
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

const lower = (text: string) => text.toLowerCase().replace(/ς/g, "σ");

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
  const page = await first.links.list(organization.id, filter, limit, part);
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

const EXACT: LinkFilter[] = [
  { url: SAME_URL },
  { url: SAME_URL.toUpperCase() },
  { url: `${SAME_URL}?` },
  { url: SAME_URL, archived: true },
  { url: SAME_URL, search: "summer" },
  { url: SAME_URL, tag: "news" },
  { url: "https://shop.example/items/7919?ref=1" },
  { slug: "same-44" },
  { slug: "SAME-44" },
  { slug: "same-44", url: SAME_URL },
  { externalId: "own 700" },
  { externalId: "OWN 700" },
  { externalId: "own 7" },
  { externalId: "own 701" },
];

const PAGES = [{}, below(oldLinkId(COUNT / 2)), below(oldLinkId(3)), below("lnk_00")];

async function compareAll(t: ExecutionContext, parts: ListPart[] = PAGES, filters = FILTERS) {
  for (const filter of filters) {
    for (const part of parts) {
      const message = JSON.stringify([filter, part]);
      t.deepEqual(await found(filter, 30, part), expected(filter, 30, part), message);
    }
  }
}

test.serial("a search finds the same links as comparing all of them, on every page", async (t) => {
  const all = expected({ search: "shop" }, COUNT);
  t.deepEqual(await found({ search: "shop" }, COUNT), all);
  await compareAll(t);
});

// More links have the first value of clicks than a page shows, and the last one is that of links without clicks.
const SORTED: ListPart[] = (["clicks", "last_clicked_at"] as const).flatMap((sort) =>
  [undefined, 7, Date.UTC(2030, 0, 14), 0].map((value) => ({
    sort,
    from: value === undefined ? value : { id: oldLinkId(COUNT / 2), value },
  })),
);
const BACKWARD = [...PAGES.slice(1), ...SORTED.filter(({ from }) => from)].map((part) => ({
  ...part,
  isAscending: true,
}));

test.serial("a sorted search finds the same links as sorting all of them, on every page", async (t) => {
  await compareAll(t, SORTED, [{}, ...FILTERS.slice(0, 4), ...FILTERS.slice(-7)]);
});

test.serial("a list read backward has the links above its boundary, the closest one first", async (t) => {
  await compareAll(t, BACKWARD, [{}, ...FILTERS.slice(0, 4), ...FILTERS.slice(-7)]);
});

test.serial("exact filters find the same links as comparing all of them, on every page", async (t) => {
  const below50: ListPart = below(oldLinkId(50));
  const ascending: ListPart = { isAscending: true };
  const byClicks: ListPart = { sort: "clicks", isAscending: true };
  await compareAll(t, [{}, below50, ascending, { ...below50, ...ascending }, byClicks], EXACT);
});

test.serial("an exact filter is looked up in an index", async (t) => {
  const indexes = { url: "links_url", slug: "slug", externalId: "external_id" };
  for (const [name, index] of Object.entries(indexes)) {
    const value = { url: SAME_URL, slug: "same-44", externalId: "own 700" }[name as keyof typeof indexes];
    const plans: string[] = [];
    const search = createSearch({
      ...database,
      async readAside(query, timeoutMs) {
        const explain = engine === "sqlite" ? "explain query plan" : "explain";
        plans.push(JSON.stringify(await database.knex.raw(`${explain} ${query.toQuery()}`)));
        return database.readAside(query, timeoutMs);
      },
    });
    await search.findRows(organization.id, { [name]: value }, 26, {});
    t.true(plans[0]?.includes(index), plans[0]);
  }
});

test.serial("a list in ascending order starts with the oldest links", async (t) => {
  const ascending: ListPart[] = (["created_at", "clicks", "last_clicked_at"] as const).map((sort) => ({
    sort,
    isAscending: true,
  }));
  await compareAll(t, ascending, [{}, ...FILTERS.slice(0, 4), ...FILTERS.slice(-7)]);
});

test.serial("only the ids are listed, of links that existed at a time, and up to a limit", async (t) => {
  for (const filter of [{}, ...FILTERS]) {
    const all = expected(filter, COUNT);
    const listed = (limit: number, createdBefore?: number) =>
      first.links.listIds(organization.id, { ...filter, createdBefore }, limit);
    t.deepEqual(await listed(COUNT, Date.now()), { ids: all, isComplete: true });
    t.deepEqual(await listed(COUNT, 1), { ids: [], isComplete: true });
    t.like(await listed(7), { ids: all.slice(0, 7) });
  }
});

test.serial("a list of ids says that it ended before all links were compared", async (t) => {
  // MariaDB compares all links in one piece.
  const compared = engine === "mysql" ? COUNT : 8000;
  for (const filter of FILTERS) {
    const scope = { maxCompared: 8000 };
    const found = await first.links.listIds(organization.id, filter, COUNT, scope);
    const newest = expected(filter, COUNT).filter((id) => id >= oldLinkId(COUNT - compared));
    t.deepEqual(found, { ids: newest, isComplete: compared === COUNT }, JSON.stringify(filter));
  }
});

test.serial("a sorted link shows the value by which it was sorted", async (t) => {
  for (const sort of ["clicks", "last_clicked_at"] as const) {
    const page = (await first.links.list(organization.id, {}, COUNT, { sort })) as Link[];
    t.deepEqual(
      page,
      expected({}, COUNT, { sort }).map((id) => byId.get(id) as Link),
    );
  }
});

test.serial("a link that is deleted during a search is replaced by the next one", async (t) => {
  const [doomed = "", ...others] = expected({}, 4, { sort: "clicks" });
  const search = createSearch({
    ...database,
    async readAside(query, timeoutMs) {
      const readsLinks = / in \(/.test(query.toString());
      if (readsLinks && byId.delete(doomed)) await first.links.remove(organization.id, doomed, OPERATOR);
      return database.readAside(query, timeoutMs);
    },
  });
  const rows = await search.findRows(organization.id, {}, 3, { sort: "clicks" });
  t.deepEqual(
    rows.map(({ id }) => id),
    others,
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
  await compareAll(t, [{}]);
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
    const search = () => searched.links.list(id, { search: "LINK 12" }, 1, below(oldLinkId(50)));
    t.deepEqual(await search(), [links.find(({ title }) => title === "link 12")] as Link[]);

    for (const statement of CREATE_SEARCH_INDEX) await owner.knex.raw(statement);
    t.true(await searched.hasSearchIndex());
  });

  test.serial("a search without the index on PostgreSQL finds the same links", async (t) => {
    await database.knex.raw("drop index links_search");
    await compareAll(t, [{}]);
  });
}
