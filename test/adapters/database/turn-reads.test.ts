import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import Sqlite from "better-sqlite3";
import { createTurnReads } from "../../../adapters/database/sqlite/turn-reads.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-turn-reads-"));
const file = path.join(folder, "test.sqlite");
const connection = new Sqlite(file);
connection.pragma("journal_mode = WAL");
connection.exec("create table numbers (value integer)");
const other = new Sqlite(file);
const sum = connection.prepare("select coalesce(sum(value), 0) from numbers").pluck();
test.after.always(() => {
  connection.close();
  other.close();
  rmSync(folder, { recursive: true, force: true });
});

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
