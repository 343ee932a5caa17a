import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import Sqlite from "better-sqlite3";
import { createTurnReads } from "../../../adapters/database/sqlite/turn-reads.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const { first, close } = await createTestStorage();
const { organization } = await first.organizations.create("Lookups", "growth", OPERATOR);
const slugOf = (index: number) => `found-${index}`;
await atOnce(10, (index) =>
  first.links.create(organization.id, OPERATOR, linkFields({ slug: slugOf(index) })),
);

test.after.always(() => {
  connection.close();
  other.close();
  rmSync(folder, { recursive: true, force: true });
});

test.after.always(close);

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-turn-reads-"));
const file = path.join(folder, "test.sqlite");
const connection = new Sqlite(file);
connection.pragma("journal_mode = WAL");
connection.exec("create table numbers (value integer)");
const other = new Sqlite(file);
const sum = connection.prepare("select coalesce(sum(value), 0) from numbers").pluck();

test.serial("a read that fails doesn't affect the others, and leaves no transaction open", async (t) => {
  const { add } = createTurnReads(connection);
  const fail = () => connection.prepare("select * from missing").all();
  const results = await Promise.allSettled([add(() => 1), add(fail), add(() => 3)]);
  t.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  t.false(connection.inTransaction);
});

test.serial("reads of a turn see the same state, with every commit before them", async (t) => {
  const { add } = createTurnReads(connection);
  const write = () => other.prepare("insert into numbers values (1)").run();
  for (let before = 0; before < 3; before++) {
    const reads = [add(() => sum.get()), add(() => void write()), add(() => sum.get())];
    write();
    const [first, , last] = await Promise.all(reads);
    t.deepEqual([first, last], [before * 2 + 1, before * 2 + 1]);
    t.is(await add(() => sum.get()), before * 2 + 2);
  }
});

test.serial(
  "each read runs in the context of its caller, and `run` doesn't wait for the end of the turn",
  async (t) => {
    const { add, run } = createTurnReads(connection);
    const context = new AsyncLocalStorage<number>();
    const read = (number: number) => context.run(number, () => add(() => context.getStore()));
    t.deepEqual(await Promise.all([1, 2, 3].map(read)), [1, 2, 3]);
    let isDone = false;
    const last = add(() => {
      isDone = true;
    });
    run();
    t.true(isDone);
    await last;
  },
);

test.serial("reads of a connection that is closed before they run are rejected", async (t) => {
  const closed = new Sqlite(file);
  const { add } = createTurnReads(closed);
  const read = () => closed.prepare("select 1").get();
  const reads = [add(read), add(read)];
  closed.close();
  const results = await Promise.allSettled(reads);
  t.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "rejected"],
  );
});

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
