import { mock } from "node:test";
import test from "ava";
import { createWriteBehindBuffer } from "../../adapters/database/write-behind.ts";

const GATHER_MS = 2000;

test("writes that have waited for those before them are stored without gathering again", async (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.teardown(() => mock.timers.reset());
  const began = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const first = Promise.withResolvers<void>();
  let stored = 0;
  const buffer = createWriteBehindBuffer(async () => {
    began[stored++]?.resolve();
    if (stored === 1) await first.promise;
  }, GATHER_MS);
  buffer.schedule();
  void buffer.settled();
  await began[0].promise;
  buffer.schedule();
  mock.timers.tick(GATHER_MS);
  first.resolve();
  await began[1].promise;
  t.is(stored, 2);
});
