import path from "node:path";
import test from "ava";
import Sqlite from "better-sqlite3";
import { createTurnReads } from "../../adapters/database/sqlite/client.ts";
import { atOnce, createTestStorage } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { temporaryFolder } from "../harness/program.ts";

export const databases = "all";

const { first, createOrganization, createLink, close } = await createTestStorage();
const organizationId = await createOrganization();
const slugOf = (index: number) => `found-${index}`;
await atOnce(10, (index) => createLink(organizationId, { slug: slugOf(index) }));
test.after.always(async () => {
  connection.close();
  other.close();
  await close();
});

const file = path.join(temporaryFolder("turn-reads"), "test.sqlite");
const connection = new Sqlite(file);
connection.pragma("journal_mode = WAL");
connection.exec("create table numbers (value integer)");
const other = new Sqlite(file);
const sum = connection.prepare("select coalesce(sum(value), 0) from numbers").pluck();

test.serial("a read that fails doesn't affect the others, and leaves no transaction open", async (t) => {
  const { add } = createTurnReads(connection);
  const fail = () => connection.prepare("select * from missing").all();
  const results = await Promise.allSettled([add(() => 1), add(fail), add(() => 3)]);
  t.like(results, [{ status: "fulfilled" }, { status: "rejected" }, { status: "fulfilled" }]);
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

test.serial("`run` reads immediately", async (t) => {
  const { add, run } = createTurnReads(connection);
  let isDone = false;
  const last = add(() => {
    isDone = true;
  });
  run();
  t.true(isDone);
  await last;
});

test.serial("reads of a connection that is closed before they run are rejected", async (t) => {
  const closed = new Sqlite(file);
  const { add } = createTurnReads(closed);
  const read = () => closed.prepare("select 1").get();
  const reads = [add(read), add(read)];
  closed.close();
  const results = await Promise.allSettled(reads);
  t.like(results, [{ status: "rejected" }, { status: "rejected" }]);
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

test.serial("100 concurrent lookups take few statements on PostgreSQL, and one on SQLite", async (t) => {
  const statements: string[] = [];
  t.teardown(first.onStatement((sql) => void statements.push(sql)));
  await atOnce(100, (index) => first.links.resolve(slugOf(index % 10)));
  const count = statements.filter((sql) => /from .*link/.test(sql)).length;
  if (engine === "postgres") t.true(count <= 2, `${count} statements`);
  else t.is(count, engine === "sqlite" ? 1 : 100);
});
