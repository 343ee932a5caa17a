import test from "ava";
import { readClock } from "../../../adapters/database/clock.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

test("the clock of the database is read with milliseconds", async (t) => {
  const { database, close } = await createTestStorage();
  t.teardown(close);
  // The database runs on this machine.
  const before = Date.now();
  const time = await readClock(database);
  t.true(time >= before - 1 && time <= Date.now() + 1, `${time}`);
});
