import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createCursors } from "../../../resources/http/pagination.ts";
import { createLinkList, type LinkPage } from "../../../resources/links/list.ts";
import type { Link } from "../../../resources/links/types.ts";
import { createWorkQueue } from "../../../resources/work-queue.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";

export const databases = "all";

const COUNT = 47;
const { first: storage, database, close } = await createTestStorage();
test.after.always(close);

const list = createLinkList(storage.links, createCursors("secret"), {
  reads: createWorkQueue(),
  work: createWorkQueue(),
});

let large: string;
test.before(async () => {
  const { organization } = await storage.organizations.create("Large", "growth", OPERATOR);
  large = organization.id;
  await storeManyLinks(database.knex, large, COUNT, (number) => ({
    title: "x".repeat(200),
    tags: number % 3 === 0 ? ["third"] : [],
    clicks: number % 5,
    lastClickedAt: number % 5 === 0 ? null : (number % 7) + 1,
  }));
});

/** Creates an organization with 20 links, and returns them, newest first. */
async function createLinks() {
  const { organization } = await storage.organizations.create("Changed", "growth", OPERATOR);
  const links: Link[] = [];
  for (let number = 0; number < 20; number++) {
    const fields = linkFields({ slug: `${organization.id.slice(-8)}-${number}` });
    links.push((await storage.links.create(organization.id, OPERATOR, fields)) as Link);
  }
  return { links: links.reverse(), organizationId: organization.id };
}

const ids = ({ links }: { links: Link[] }) => links.map(({ id }) => id);

type Lister = (cursor: string | null) => Promise<LinkPage>;

function listerOf(organizationId: string, query: object): Lister {
  return (cursor) => list({ organizationId, actor: OPERATOR }, { ...query, ...(cursor && { cursor }) });
}

/** Follows one of the cursors from a page to the last one. Returns all pages, the given one first. */
async function walk(lister: Lister, start: LinkPage, which: "nextCursor" | "previousCursor") {
  const pages = [start];
  for (let cursor = start[which]; cursor; cursor = pages.at(-1)?.[which] ?? null) {
    pages.push(await lister(cursor));
  }
  return pages;
}

async function isSameBackward(t: ExecutionContext, lister: Lister) {
  const forward = await walk(lister, await lister(null), "nextCursor");
  const backward = await walk(lister, forward.at(-1) as LinkPage, "previousCursor");
  t.deepEqual(backward.map(ids).reverse(), forward.map(ids));
  const again = await walk(lister, backward.at(-1) as LinkPage, "nextCursor");
  t.deepEqual(again.slice(0, forward.length).map(ids), forward.map(ids));
  t.is(forward[0]?.previousCursor, null);
  const sizes = forward.map(({ links }) => links.length);
  const offsets = sizes.map((_, index) => sizes.slice(0, index).reduce((sum, size) => sum + size, 0));
  for (const pages of [forward, backward.toReversed()])
    t.deepEqual(
      pages.map(({ offset }) => offset),
      offsets,
    );
  return forward;
}

for (const sort of ["-created_at", "created_at", "-clicks", "clicks", "-last_clicked_at"]) {
  for (const filter of [{}, { tag: "third" }, { search: "EXAMPLE", archived: false }]) {
    for (const limit of [1, 5, 26]) {
      const query = { sort, limit, ...filter };
      test(`the pages of ${JSON.stringify(query)} are the same forward and back`, async (t) => {
        const pages = await isSameBackward(t, listerOf(large, query));
        const count = "tag" in filter ? Math.ceil(COUNT / 3) : COUNT;
        t.is(new Set(pages.flatMap(ids)).size, count);
        t.is(pages.length, Math.ceil(count / limit));
      });
    }
  }
}

test("pages of large links are complete forward and back", async (t) => {
  const lister: Lister = (cursor) =>
    list({ organizationId: large, actor: OPERATOR }, { limit: 30, ...(cursor && { cursor }) }, 5000);
  const forward = await walk(lister, await lister(null), "nextCursor");
  const backward = await walk(lister, forward.at(-1) as LinkPage, "previousCursor");
  t.true(forward.length > 2);
  t.deepEqual(backward.reverse().flatMap(ids), forward.flatMap(ids));
});

test("links that are created and deleted meanwhile leave no gaps on the way back", async (t) => {
  const { organizationId, links } = await createLinks();
  const lister = listerOf(organizationId, { limit: 4 });
  const fourth = (await walk(lister, await lister(null), "nextCursor"))[3] as LinkPage;
  const above = ids({ links }).slice(0, 12);
  const deleted = [2, 7, 8].map((index) => above[index] as string);
  for (const id of deleted) await storage.links.remove(organizationId, id, OPERATOR);
  const fields = linkFields({ slug: `${links[0]?.slug}-new` });
  const created = (await storage.links.create(organizationId, OPERATOR, fields)) as Link;
  const [, ...back] = await walk(lister, fourth, "previousCursor");
  t.is(back.at(-1)?.offset, 0);
  t.deepEqual(back.reverse().flatMap(ids), [created.id, ...above.filter((id) => !deleted.includes(id))]);
});

test("if all links above a page were deleted, its previous page is the first one", async (t) => {
  const { organizationId, links } = await createLinks();
  const lister = listerOf(organizationId, { limit: 5 });
  const second = await lister((await lister(null)).nextCursor);
  for (const { id } of links.slice(0, 5)) await storage.links.remove(organizationId, id, OPERATOR);
  t.deepEqual(await lister(second.previousCursor), await lister(null));
  t.deepEqual(ids(await lister(null)), ids(second));
});

test("a page from which all links were deleted still leads back", async (t) => {
  const { organizationId, links } = await createLinks();
  const lister = listerOf(organizationId, { limit: 16 });
  const first = await lister(null);
  for (const { id } of links.slice(16)) await storage.links.remove(organizationId, id, OPERATOR);
  const empty = await lister(first.nextCursor);
  t.deepEqual([empty.links, empty.nextCursor], [[], null]);
  t.deepEqual(ids(await lister(empty.previousCursor)), ids(first));
});
