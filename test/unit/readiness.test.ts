import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import type { Storage } from "../../adapters/index.ts";
import type { Log } from "../../server/log.ts";
import { createReadiness } from "../../server/observability/health.ts";

test("a check that takes longer than 2 seconds fails for callers that come later, too", async (t) => {
  const answered = Promise.withResolvers<string[]>();
  const storage = { pendingMigrations: () => answered.promise, isWritable: async () => true };
  const readiness = createReadiness(storage as unknown as Storage, {} as Log);
  const first = readiness();
  t.is(await first, "no database");
  const later = readiness();
  t.is(await Promise.race([later, nextTurn("waits")]), "no database");
  answered.resolve([]);
  await nextTurn();
  t.is(await readiness(), "ready");
});

test("a process is ready once the database was writable, and stays so when it is read-only later", async (t) => {
  let isWritable = false;
  const storage = { pendingMigrations: async () => [], isWritable: async () => isWritable };
  const readiness = createReadiness(storage as unknown as Storage, {} as Log);
  t.is(await readiness(), "read_only");
  isWritable = true;
  t.is(await readiness(), "ready");
  isWritable = false;
  t.is(await readiness(), "ready");
});
