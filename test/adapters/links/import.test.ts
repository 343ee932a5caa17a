import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { ImportedLink, Link } from "../../../resources/links/types.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { database, url, encryptionKey } = storage;
const limitsOf = (plan: string) =>
  plan === "premium" ? { links: 10_000, link_bytes: 10 ** 9 } : { links: 20, link_bytes: 4_000 };
// As two processes.
const processes = [1, 2].map(() => openStorage(url, encryptionKey, { limitsOf }));
const [first, second] = processes as [(typeof processes)[0], (typeof processes)[0]];
test.after.always(async () => {
  await Promise.all(processes.map((process) => process.close()));
  await storage.close();
});

let count = 0;

async function createOrganization(plan: "growth" | "premium" = "premium"): Promise<string> {
  return (await first.organizations.create(`Importing ${++count}`, plan, OPERATOR)).organization.id;
}

const DAY_MS = 24 * 60 * 60 * 1000;

function imported(slug: string, changes: Partial<ImportedLink> = {}): ImportedLink {
  return {
    ...linkFields({ slug }),
    clicks: 0,
    botClicks: 0,
    lastClickedAt: null,
    createdAt: DAY_MS,
    ...changes,
  };
}

const many = (length: number, prefix = `import-${++count}`) =>
  Array.from({ length }, (_, index) => imported(`${prefix}-${index}`));

const begin = (organizationId: string, isTrial = false, process = first) =>
  process.links.beginImport(organizationId, OPERATOR, "Bitly", isTrial);

async function countOf(organizationId: string): Promise<number> {
  const [row] = await database.knex("links").where({ organization_id: organizationId }).count({ count: "*" });
  return Number(row?.count);
}

test("links keep their times and clicks, and lists show them where they belong", async (t) => {
  const id = await createOrganization();
  const now = Date.now();
  const between = (await first.links.create(id, OPERATOR, linkFields({ slug: `now-${++count}` }))) as Link;
  const [old, older] = [
    imported(`old-${count}`, { createdAt: now - DAY_MS, clicks: 7, lastClickedAt: now - 5 }),
    imported(`older-${count}`, { createdAt: 1 }),
  ];
  t.deepEqual(await begin(id).add([older, old]), { outcomes: ["imported", "imported"] });
  const listed = (await first.links.list(id, {}, 10)) as Link[];
  t.deepEqual(
    listed.map(({ slug }) => slug),
    [between.slug, old.slug, older.slug],
  );
  t.like(listed[1], { createdAt: now - DAY_MS, clicks: 7, lastClickedAt: now - 5, createdBy: "operator" });
  t.true((listed[1]?.updatedAt ?? 0) >= now);
});

test("a batch has one event with the number of its links, and counts as usage", async (t) => {
  const id = await createOrganization();
  const target = begin(id);
  await target.add(many(700));
  await target.add(many(3));
  await target.add([]);
  const events = await database.knex("events").where({ organization_id: id, type: "links.imported" });
  t.deepEqual(
    events.map(({ data }) => JSON.parse(data)).sort((one, other) => other.imported - one.imported),
    [
      { imported: 700, format: "Bitly" },
      { imported: 3, format: "Bitly" },
    ],
  );
  t.like(await first.links.usage(id), { links: 703 });
  t.is(
    (
      await database.knex("deliveries").whereIn(
        "event_id",
        events.map(({ id }) => id),
      )
    ).length,
    0,
  );
});

test("a link that exists is recognized by its slug and URL; other slugs that are taken are refused", async (t) => {
  const [id, other] = [await createOrganization(), await createOrganization()];
  const prefix = `taken-${++count}`;
  await first.links.create(other, OPERATOR, linkFields({ slug: `${prefix}-other` }));
  await first.links.create(id, OPERATOR, linkFields({ slug: `${prefix}-own`, externalId: "own" }));
  const deleted = (await first.links.create(id, OPERATOR, linkFields({ slug: `${prefix}-deleted` }))) as Link;
  await first.links.remove(id, deleted.id, OPERATOR);
  const { outcomes } = await begin(id).add([
    imported(`${prefix}-own`),
    imported(`${prefix}-own`, { url: "https://example.com/another" }),
    imported(`${prefix}-other`),
    imported(`${prefix}-deleted`),
    imported(`${prefix}-OWN`),
    imported(`${prefix}-new`),
    imported(`${prefix}-new`),
    imported(`${prefix}-external`, { externalId: "own" }),
  ]);
  const taken = { taken: "slug" };
  t.deepEqual(outcomes, [
    "exists",
    taken,
    taken,
    taken,
    "imported",
    "imported",
    "exists",
    { taken: "external_id" },
  ]);
});

test("of concurrent imports of the same links in two processes, each link is stored once", async (t) => {
  const id = await createOrganization();
  const links = many(300);
  const results = await Promise.all([
    begin(id, false, first).add(links),
    begin(id, false, second).add([...links].reverse()),
    begin(id, false, second).add(links),
  ]);
  t.deepEqual(
    results.flatMap(({ outcomes }) => outcomes).filter((outcome) => outcome === "imported").length,
    300,
  );
  t.is(await countOf(id), 300);
  t.like(await first.links.usage(id), { links: 300 });
});

test("slugs that another organization takes meanwhile are refused, and the others are stored", async (t) => {
  const [id, other] = [await createOrganization(), await createOrganization()];
  const links = many(40);
  const [{ outcomes }, created] = await Promise.all([
    begin(id).add(links),
    atOnce(20, (index) =>
      second.links.create(other, OPERATOR, linkFields({ slug: links[index * 2]?.slug as string })),
    ),
  ]);
  const own = outcomes.filter((outcome) => outcome === "imported").length;
  const others = created.filter((result) => !("taken" in result)).length;
  t.is(own + others, 40);
  t.is(await countOf(id), own);
});

test("the quota of the plan is used up exactly, and the result says so", async (t) => {
  const id = await createOrganization("growth");
  const links = many(30);
  const result = await begin(id).add(links);
  t.is(result.outcomes.length, 20);
  t.like(result.exceeded, { code: "ERR_QUOTA_EXCEEDED", quota: "links", limit: 20 });
  t.is(await countOf(id), 20);
  const again = await begin(id).add(links);
  t.deepEqual(again.outcomes, Array(20).fill("exists"));
  t.like(again.exceeded, { quota: "links" });
  t.like(await first.links.usage(id), { links: 20 });
});

test("concurrent imports and creations never exceed the quota", async (t) => {
  const id = await createOrganization("growth");
  await Promise.all([
    ...processes.map((process) => begin(id, false, process).add(many(15))),
    ...processes.map((process) =>
      process.links.create(id, OPERATOR, linkFields({ slug: `quota-import-${++count}` })).catch(() => {}),
    ),
  ]);
  t.is(await countOf(id), 20);
  t.like(await first.links.usage(id), { links: 20 });
});

test("the size of links is limited as well", async (t) => {
  const id = await createOrganization("growth");
  const large = many(5).map((link) => ({ ...link, metadata: { text: "x".repeat(900) } }));
  const result = await begin(id).add(large);
  t.is(result.outcomes.length, 4);
  t.like(result.exceeded, { quota: "link_bytes", limit: 4_000 });
});

test("a trial has the outcomes of an import, over all its batches, and stores nothing", async (t) => {
  const id = await createOrganization("growth");
  const links = many(30);
  const batches = [links.slice(0, 12), [links[3] as ImportedLink, ...links.slice(12)]];
  const results = [];
  for (const isTrial of [true, false]) {
    const target = begin(id, isTrial);
    results.push([
      await target.add(batches[0] as ImportedLink[]),
      await target.add(batches[1] as ImportedLink[]),
    ]);
    t.is(await countOf(id), isTrial ? 0 : 20);
  }
  t.deepEqual(
    results[0]?.map(({ outcomes }) => outcomes),
    results[1]?.map(({ outcomes }) => outcomes),
  );
  t.like(results[0]?.[1]?.exceeded, { quota: "links", limit: 20 });
});
