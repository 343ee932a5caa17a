import test from "ava";
import { createCursors } from "../../../resources/http/pagination.ts";
import type { LinkPage } from "../../../resources/links/list.ts";
import { NO_NAMES } from "../../../resources/links/rules.ts";
import { createLinkService } from "../../../resources/links/service.ts";
import type { Link, LinkPasswords } from "../../../resources/links/types.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const { first: storage, knex, createOrganization } = await createTestStorage();

const service = createLinkService({
  store: storage.links,
  cursors: createCursors("secret"),
  passwords: {} as LinkPasswords,
  ...NO_NAMES,
});

const createCaller = async () => ({ organizationId: await createOrganization(), actor: OPERATOR });
type Caller = Awaited<ReturnType<typeof createCaller>>;

const createLinks = (caller: Caller, inputs: object[]): Promise<Link[]> =>
  Array.fromAsync(inputs, (input) => service.create(caller, { url: "https://example.com/", ...input }));

type FieldsOf = Parameters<typeof storeManyLinks>[3];
let stored = 0;
function storeLinks({ organizationId }: Caller, count: number, fieldsOf: FieldsOf): Promise<Link[]> {
  stored += count;
  return storeManyLinks(knex, organizationId, count, fieldsOf, { firstId: stored - count });
}

const ids = (links: Link[]) => links.map(({ id }) => id);

test("a search and each filter find links of the organization only", async (t) => {
  const [caller, other] = [await createCaller(), await createCaller()];
  const found = { url: "https://needle.example/?a=%C3%A4#ü", title: "50% off", tags: ["50%"] };
  const [, link] = await createLinks(caller, [{}, { ...found, external_id: "crm/0 ä", slug: "found" }]);
  await createLinks(other, [{ ...found, external_id: "crm/0 ä", slug: "of-another" }]);
  const queries = { search: "50%", tag: "50%", url: found.url, slug: "found", external_id: "crm/0 ä" };
  for (const [name, value] of Object.entries({ ...queries, created_after: "2001-01-01T00:00:00+14:00" })) {
    const { links } = await service.list(caller, { tag: "50%", [name]: value });
    t.deepEqual(ids(links), [link?.id], name);
  }
  for (const query of [{ slug: "of-another" }, { search: "of-another" }, { tag: "50%", search: "other" }])
    t.deepEqual((await service.list(caller, query)).links, [], JSON.stringify(query));
});

test("links are found by when they were created: from the first time up to, but without, the second", async (t) => {
  const caller = await createCaller();
  const links = await createLinks(caller, Array(5).fill({}));
  const [created_after = "", , created_before = ""] = links.map(({ createdAt }) =>
    new Date(createdAt).toISOString(),
  );
  const isWithin = ({ createdAt }: Link) =>
    createdAt >= Date.parse(created_after) && createdAt < Date.parse(created_before);
  const found = await service.list(caller, { created_after, created_before, sort: "created_at" });
  t.deepEqual(ids(found.links), ids(links.filter(isWithin)));
  for (const never of [{ created_after: "9999-12-31T23:59:59Z" }, { created_before: "0001-01-01T00:00:00Z" }])
    t.deepEqual((await service.list(caller, never)).links, []);
});

test("archived links are listed if they are asked for, active ones too, and deleted ones never", async (t) => {
  const caller = await createCaller();
  const inputs = [{}, {}, { title: "very private", slug: "very-private" }];
  const [active, archived, deleted] = ids(await createLinks(caller, inputs)) as [string, string, string];
  await service.update(caller, archived, { archived: true });
  await service.remove(caller, deleted);
  for (const [query, expected] of [
    [{ archived: true }, [archived]],
    [{ archived: false }, [active]],
    [{}, [archived, active]],
    [{ search: "very" }, []],
    [{ slug: "very-private" }, []],
  ] as const)
    t.deepEqual(ids((await service.list(caller, query)).links), [...expected], JSON.stringify(query));
});

let large: Caller;
let largeLinks: Link[];
test.before(async () => {
  large = await createCaller();
  largeLinks = await storeLinks(large, 47, (number) => ({
    title: "x".repeat(200),
    tags: number % 3 === 0 ? ["third"] : [],
    clicks: number % 5,
    lastClickedAt: number % 5 === 0 ? null : (number % 7) + 1,
  }));
});

type Lister = (cursor: string | null) => Promise<LinkPage>;

function listerOf(caller: Caller, query: object, maxLength?: number): Lister {
  return (cursor) => service.list(caller, { ...query, ...(cursor && { cursor }) }, maxLength);
}

/** Follows one of the cursors from a page, by default the first one. Returns all pages, in that order. */
async function walk(lister: Lister, which: "nextCursor" | "previousCursor" = "nextCursor", start?: LinkPage) {
  const pages = [start ?? (await lister(null))];
  for (;;) {
    const cursor = pages.at(-1)?.[which];
    if (!cursor) return pages;
    pages.push(await lister(cursor));
  }
}

const idsOf = (pages: LinkPage[]) => pages.flatMap((page) => ids(page.links));
const offsetsOf = (pages: LinkPage[]) => pages.map(({ offset }) => offset);

/** By the field, the value of a link. Links with the same one are in the order of their creation. */
const VALUES: Record<string, (link: Link) => number> = {
  created_at: () => 0,
  clicks: ({ clicks }) => clicks,
  last_clicked_at: ({ lastClickedAt }) => lastClickedAt ?? 0,
};

for (const sort of Object.keys(VALUES).flatMap((field) => [field, `-${field}`])) {
  const sortedValue = VALUES[sort.replace("-", "")] as (link: Link) => number;
  const order = (all: Link[]) => {
    const ascending = all.toReversed().sort((one, other) => sortedValue(one) - sortedValue(other));
    return ids(sort.startsWith("-") ? ascending.reverse() : ascending);
  };

  test(`pages sorted by ${sort} have all links in order, forward and back, and know their offsets`, async (t) => {
    for (const [filter, limit] of [
      [{}, 1],
      [{}, 26],
      [{ tag: "third" }, 5],
      [{ search: "EXAMPLE", archived: false }, 5],
    ] as const) {
      const all = "tag" in filter ? largeLinks.filter(({ tags }) => tags.includes("third")) : largeLinks;
      const lister = listerOf(large, { sort, limit, ...filter });
      const forward = await walk(lister);
      t.deepEqual(idsOf(forward), order(all));
      t.is(forward.length, Math.ceil(all.length / limit));
      const backward = await walk(lister, "previousCursor", forward.at(-1));
      t.deepEqual(idsOf(backward.toReversed()), idsOf(forward));
      const offsets = forward.map((_, index) => index * limit);
      for (const pages of [forward, backward.toReversed()]) t.deepEqual(offsetsOf(pages), offsets);
    }
  });
}

test("pages of large links end early, by default, too, and are complete forward and back", async (t) => {
  const caller = await createCaller();
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`key${n}`, "x".repeat(500)]));
  const largest = await storeLinks(caller, 30, () => ({ metadata }));
  for (const [lister, all, most] of [
    [listerOf(large, { limit: 30 }, 5000), largeLinks, 23],
    [listerOf(caller, { limit: 100 }), largest, 19],
  ] as const) {
    const forward = await walk(lister);
    const backward = await walk(lister, "previousCursor", forward.at(-1));
    t.true(forward.every((page) => page.links.length <= most));
    t.deepEqual(idsOf(forward), ids(all));
    t.deepEqual(idsOf(backward.reverse()), ids(all));
  }
});

test("a link that is clicked between two pages is not listed again, and no other link is missing", async (t) => {
  const caller = await createCaller();
  const own = await storeLinks(caller, 9, (number) => ({
    slug: `clicked-${number}`,
    clicks: [2, 0, 1, 3, 0, 1, 2, 0, 1][number] as number,
  }));
  const numbers = (page: LinkPage) => page.links.map(({ id }) => 8 - ids(own).indexOf(id));
  const first = await service.list(caller, { sort: "-clicks", limit: 5 });
  t.deepEqual(numbers(first), [3, 6, 0, 8, 5]);
  const source = { referrer: null, country: null, device: null, browser: null, operatingSystem: null };
  const visit = { source: { ...source, bot: false }, isCounted: true, query: "", readLanguage: () => "en" };
  for (let click = 0; click < 5; click++) await service.redirect({ path: "clicked-5" }, visit);
  const next = await service.list(caller, { sort: "-clicks", limit: 5, cursor: first.nextCursor });
  t.deepEqual(numbers(next), [2, 7, 4, 1]);
});

test("links that are created and deleted meanwhile leave no gaps on the way back", async (t) => {
  const caller = await createCaller();
  const own = ids(await createLinks(caller, Array(20).fill({}))).reverse();
  const lister = listerOf(caller, { limit: 4 });
  const fourth = (await walk(lister))[3] as LinkPage;
  const deleted = [2, 7, 8].map((index) => own[index] as string);
  for (const id of deleted) await service.remove(caller, id);
  const [created] = ids(await createLinks(caller, [{}]));
  const [, ...back] = await walk(lister, "previousCursor", fourth);
  t.is(back.at(-1)?.offset, 0);
  t.deepEqual(idsOf(back.reverse()), [created, ...own.slice(0, 12).filter((id) => !deleted.includes(id))]);
});

test("if all links above a page, or on it, were deleted, its previous page is the first one", async (t) => {
  const caller = await createCaller();
  const own = ids(await createLinks(caller, Array(12).fill({}))).reverse();
  const lister = listerOf(caller, { limit: 5 });
  const [, second, third] = await walk(lister);
  for (const id of own.slice(0, 5)) await service.remove(caller, id);
  t.deepEqual(await lister(second?.previousCursor as string), await lister(null));
  t.deepEqual(ids((await lister(null)).links), ids(second?.links ?? []));
  for (const { id } of third?.links ?? []) await service.remove(caller, id);
  const empty = await lister(second?.nextCursor as string);
  t.deepEqual([empty.links, empty.nextCursor], [[], null]);
  t.deepEqual(ids((await lister(empty.previousCursor)).links), own.slice(5, 10));
});

const BOUND = [{}, { tag: "third" }, { search: "x" }, { archived: false }, { tag: "third", search: "x" }];
const refused = { code: "invalid_cursor" };
const SORTS = [{ sort: "clicks" }, { sort: "-clicks" }, { sort: "last_clicked_at" }];

test("a cursor is bound to its filter, sort and organization, but not to a limit, an actor or the order of parameters", async (t) => {
  const stranger = await createCaller();
  for (const from of [...BOUND, ...SORTS]) {
    const { nextCursor: cursor } = await service.list(large, { limit: 2, ...from });
    for (const to of [...BOUND, ...SORTS].filter((other) => other !== from))
      await t.throwsAsync(service.list(large, { ...to, cursor }), refused, JSON.stringify([from, to]));
    await t.throwsAsync(service.list(stranger, { ...from, cursor }), refused);
    const reversed = Object.fromEntries(Object.entries({ ...from, cursor, limit: 3 }).toReversed());
    const colleague = { ...large, actor: { id: "usr_1", via: "lgc_1" } };
    t.is((await service.list(colleague, reversed)).links.length, 3);
  }
});

test("links are counted up to a thousand", async (t) => {
  const caller = await createCaller();
  await storeLinks(caller, 1001, (number) => ({
    tags: number === 0 ? ["first"] : ["others"],
    title: number < 10 ? "one digit" : null,
  }));
  const { count } = service.matches;
  t.deepEqual(await count(caller, {}), { links: 1000, isExact: false });
  t.deepEqual(await count(caller, { tag: "others" }), { links: 1000, isExact: true });
  t.deepEqual(await count(caller, { search: "One Digit" }), { links: 10, isExact: true });
  t.deepEqual(await count(caller, { archived: true }), { links: 0, isExact: true });
});

test("slugs with a prefix are suggested, those of the newest links first, without deleted and foreign ones", async (t) => {
  const [caller, other] = [await createCaller(), await createCaller()];
  const slugs = ["spring-1", "Spring-2", "spring_3", "springx3", "autumn-spring", "spring-deleted"];
  const inputs = slugs.map((slug) => ({ slug }));
  const created = await createLinks(caller, inputs);
  await createLinks(other, [{ slug: "spring-other" }]);
  await service.remove(caller, created.at(-1)?.id as string);
  for (const [prefix, expected] of [
    ["spring", ["springx3", "spring_3", "spring-1"]],
    ["spring_", ["spring_3"]],
    ["Spring", ["Spring-2"]],
    ["spring-1", ["spring-1"]],
    ["spring-10", []],
    ["", ["autumn-spring", "springx3", "spring_3", "Spring-2", "spring-1"]],
    ...["%", "a%", "a b", "é", "a\0", "x".repeat(65), "'"].map((prefix) => [prefix, []] as const),
  ] as const)
    t.deepEqual(await service.suggestSlugs(caller, prefix, 10), [...expected], prefix);
  t.deepEqual(await service.suggestSlugs(caller, "spring", 2), ["springx3", "spring_3"]);
});

test("the slug of an old link is suggested and found among thousands of newer ones", async (t) => {
  const caller = await createCaller();
  const all = await storeLinks(caller, 5000, (number) => (number === 3 ? { slug: "needle" } : {}));
  t.deepEqual(await service.suggestSlugs(caller, "nee", 10), ["needle"]);
  t.is((await service.findBySlug(caller, "needle"))?.id, all.at(-4)?.id);
});

test("the 100 tags that most of the 1,000 newest links have are suggested, most used first", async (t) => {
  const caller = await createCaller();
  t.deepEqual(await service.suggestTags(caller), []);
  const [newest] = await storeLinks(caller, 1200, (number) => ({
    tags: [
      ...(number % 2 === 0 ? ["half"] : []),
      ...(number % 3 === 0 ? ["third, with a comma"] : []),
      ...(number < 200 ? ["too old"] : []),
      ...(number >= 300 && number < 700 ? [`rare ${number % 200}`] : []),
    ],
  }));
  await service.update(caller, newest?.id as string, { tags: ["new", "half"] });
  await service.remove(caller, newest?.id as string);
  const tags = await service.suggestTags(caller);
  t.deepEqual(tags.slice(0, 2), ["half", "third, with a comma"]);
  t.is(tags.length, 100);
  t.true(tags.slice(2).every((tag) => tag.startsWith("rare")));
});
