import test from "ava";
import type { ImportedLink, Link } from "../../../resources/links/types.ts";
import { DAY_MS } from "../../harness/clock.ts";
import { atOnce, createTestStorage, linkFields, OPERATOR } from "../../harness/database/storage.ts";
import { storeDomain } from "../../harness/domains.ts";

export const databases = "all";

const { first, second, knex, ...storage } = await createTestStorage({
  limitsOf: (plan) =>
    plan === "premium" ? { links: 10_000, link_bytes: 10 ** 9 } : { links: 20, link_bytes: 4_000 },
});
const createOrganization = (plan: "growth" | "premium" = "premium") => storage.createOrganization(plan);
let count = 0;

function imported(slug: string, changes: Partial<ImportedLink> = {}): ImportedLink {
  const usual = { clicks: 0, botClicks: 0, lastClickedAt: null, createdAt: DAY_MS };
  return { ...linkFields({ slug }), ...usual, ...changes };
}

const many = (length: number, prefix = `import-${++count}`) =>
  Array.from({ length }, (_, index) => imported(`${prefix}-${index}`));

const begin = (organizationId: string, isTrial = false, process = first) =>
  process.links.beginImport(organizationId, OPERATOR, "Bitly", isTrial);

async function countOf(organizationId: string): Promise<number> {
  const [row] = await knex("links").where({ organization_id: organizationId }).count({ count: "*" });
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
  t.is(listed.map(({ slug }) => slug).join(), [between.slug, old.slug, older.slug].join());
  t.like(listed[1], { createdAt: now - DAY_MS, clicks: 7, lastClickedAt: now - 5, createdBy: "operator" });
  t.true((listed[1]?.updatedAt ?? 0) >= now);
});

test("a batch has one event with the number of its links, and counts as usage", async (t) => {
  const id = await createOrganization();
  const target = begin(id);
  await target.add(many(700));
  await target.add(many(3));
  await target.add([]);
  const events = await knex("events").where({ organization_id: id, type: "links.imported" });
  const recorded = events
    .map(({ data }) => JSON.parse(data))
    .sort((one, other) => one.imported - other.imported);
  const expected = [3, 700].map((imported) => ({ imported, format: "Bitly" }));
  t.deepEqual(recorded, expected);
  t.like(await first.links.usage(id), { links: 703 });
  const ids = events.map(({ id }) => id);
  t.deepEqual(await knex("deliveries").whereIn("event_id", ids), []);
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
  const others = ["imported", "imported", "exists", { taken: "external_id" }];
  t.deepEqual<unknown, unknown>(outcomes, ["exists", taken, taken, taken, ...others]);
});

test("on each domain, a slug is apart, and recognized by what the domain says of case", async (t) => {
  const id = await createOrganization();
  const prefix = `domain-${++count}`;
  const [exact, folded, absent] = ["exact", "folded", "absent"].map((name) => `${name}.${prefix}.example`);
  for (const [host, caseSensitive] of [
    [exact, true],
    [folded, false],
  ] as const)
    await storeDomain(first, id, host as string, { caseSensitive });
  const links = [null, exact, folded].map((domain = null) => imported(`${prefix}-Sale`, { domain }));
  t.deepEqual((await begin(id).add(links)).outcomes, ["imported", "imported", "imported"]);
  t.deepEqual((await begin(id).add(links)).outcomes, ["exists", "exists", "exists"]);
  const url = "https://example.com/another";
  const { outcomes } = await begin(id).add([
    imported(`${prefix}-sALE`, { domain: exact as string, url }),
    imported(`${prefix}-sALE`, { domain: folded as string, url }),
    imported(`${prefix}-sALE`, { domain: folded as string }),
    imported(`${prefix}-Sale`, { domain: absent as string }),
  ]);
  t.deepEqual<unknown, unknown>(outcomes, ["imported", { taken: "slug" }, "exists", { missing: "domain" }]);
  t.is(await countOf(id), 4);
  const other = await createOrganization();
  const foreign = await begin(other).add([imported(`${prefix}-Sale`, { domain: exact as string })]);
  t.deepEqual<unknown, unknown>(foreign.outcomes, [{ missing: "domain" }], "another organization's");
});

test("of concurrent imports of the same links in two processes, each link is stored once", async (t) => {
  const id = await createOrganization();
  const links = many(300);
  const results = await Promise.all([
    begin(id, false, first).add(links),
    begin(id, false, second).add([...links].reverse()),
    begin(id, false, second).add(links),
  ]);
  const outcomes = results.flatMap((result) => result.outcomes);
  t.is(outcomes.filter((outcome) => outcome === "imported").length, 300);
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

test("each quota of the plan is used up exactly, and the result says so", async (t) => {
  const large = many(5).map((link) => ({ ...link, metadata: { text: "x".repeat(900) } }));
  for (const [links, quota, limit, count] of [
    [many(30), "links", 20, 20],
    [large, "link_bytes", 4_000, 4],
  ] as const) {
    const id = await createOrganization("growth");
    const result = await begin(id).add(links);
    t.is(result.outcomes.length, count);
    t.like(result.exceeded, { code: "ERR_QUOTA_EXCEEDED", quota, limit });
    t.is(await countOf(id), count);
    const again = await begin(id).add(links);
    t.deepEqual(again.outcomes, Array(count).fill("exists"));
    t.like(again.exceeded, { quota });
    t.like(await first.links.usage(id), { links: count });
  }
});

test("concurrent imports and creations never exceed the quota", async (t) => {
  const id = await createOrganization("growth");
  await Promise.all([
    ...[first, second].map((process) => begin(id, false, process).add(many(15))),
    ...[first, second].map((process) =>
      process.links.create(id, OPERATOR, linkFields({ slug: `quota-import-${++count}` })).catch(() => {}),
    ),
  ]);
  t.is(await countOf(id), 20);
  t.like(await first.links.usage(id), { links: 20 });
});

test("a trial has the outcomes of an import, over all its batches, and stores nothing", async (t) => {
  const id = await createOrganization("growth");
  const links = many(30);
  const add = async (isTrial: boolean) => {
    const target = begin(id, isTrial);
    const batch = await target.add(links.slice(0, 12));
    return [batch, await target.add([links[3] as ImportedLink, ...links.slice(12)])];
  };
  const tried = await add(true);
  t.is(await countOf(id), 0);
  const imported = await add(false);
  t.is(await countOf(id), 20);
  for (const [index, { outcomes }] of imported.entries()) t.deepEqual(tried[index]?.outcomes, outcomes);
  t.like(tried[1]?.exceeded, { quota: "links", limit: 20 });
});
