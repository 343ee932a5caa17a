import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { createWriteBehindBuffer } from "../../../adapters/database/write-behind.ts";

const GATHER_MS = 2000;

test("writes that have waited for those before them are stored without gathering again", async (t) => {
  const began = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const first = Promise.withResolvers<void>();
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  let stored = 0;
  const buffer = createWriteBehindBuffer(async () => {
    began[stored++]?.resolve();
    if (stored === 1) await first.promise;
  }, GATHER_MS);
  buffer.schedule();
  void buffer.settled();
  await began[0].promise;
  buffer.schedule();
  await sleep(GATHER_MS);
  first.resolve();
  const released = performance.now();
  await began[1].promise;
  t.true(performance.now() - released < GATHER_MS - 500);
  t.is(stored, 2);
  t.deepEqual(warnings, []);
});
