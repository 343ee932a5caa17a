import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

const { first, close } = await createTestStorage();
const { organization } = await first.organizations.create("Lookups", "growth", OPERATOR);
const slugOf = (index: number) => `found-${index}`;
await atOnce(10, (index) =>
  first.links.create(organization.id, OPERATOR, linkFields({ slug: slugOf(index) })),
);

test.after.always(close);

test.serial("concurrent lookups each find their own rows", async (t) => {
  const odd = ["", "\0", "\ud83d", '"', "\\", "{}", "NULL", "a,b", "\ufffd", "found-1\0", "'", "$1"];
  const keys = [...odd, ...Array.from({ length: 40 }, (_, index) => slugOf(index % 20)), ...odd];
  const found = await Promise.all(keys.map((key) => first.links.resolve(key)));
  for (const [index, key] of keys.entries()) {
    const number = Number(/^found-(\d+)$/.exec(key)?.[1] ?? Number.NaN);
    t.is(found[index]?.slug, number < 10 ? key : undefined, JSON.stringify(key));
  }
});

test.serial("a lookup finds what was committed before it, while others are running", async (t) => {
  for (let round = 0; round < 20; round++) {
    const slug = `fresh-${round}`;
    const earlier = atOnce(5, () => first.links.resolve(slug));
    await first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    t.is((await first.links.resolve(slug))?.slug, slug);
    await earlier;
  }
});

test.serial(
  "100 concurrent lookups take at most two statements on PostgreSQL, and one on SQLite for what is cached",
  async (t) => {
    const statements: string[] = [];
    t.teardown(first.onStatement((sql) => void statements.push(sql)));
    await atOnce(100, (index) => first.links.resolve(slugOf(index % 10)));
    const count = statements.filter((sql) => /from .*link/.test(sql)).length;
    if (engine === "postgres") t.true(count <= 2, `${count} statements`);
    else t.is(count, engine === "sqlite" ? 1 : 100);
  },
);
