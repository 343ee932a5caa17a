import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { createWriteBehindBuffer } from "../../../adapters/database/write-behind.ts";

const GATHER_MS = 2000;

test("a batch that has waited for the one before it is stored without gathering again", async (t) => {
  const began = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const first = Promise.withResolvers<void>();
  const stored: number[][] = [];
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  const buffer = createWriteBehindBuffer<number[]>({
    gatherMs: GATHER_MS,
    empty: () => [],
    carry() {},
    async store(batch) {
      stored.push(batch);
      began[stored.length - 1]?.resolve();
      if (stored.length === 1) await first.promise;
    },
  });
  buffer.next().push(1);
  void buffer.settled();
  await began[0].promise;
  buffer.next().push(2);
  await sleep(GATHER_MS);
  first.resolve();
  const released = performance.now();
  await began[1].promise;
  t.true(performance.now() - released < GATHER_MS - 500);
  t.deepEqual(stored, [[1], [2]]);
  t.deepEqual(warnings, []);
});
