import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { atOnce } from "../harness/database/storage.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";

export const databases = "all";

test("one process at a time has a lease, and asking for it is no error for the server to log", async (t) => {
  const database = await createTestDatabase();
  const failures: unknown[] = [];
  const observer = { begin: () => (error?: unknown) => void (error && failures.push(error)) };
  const processes = [1, 2, 3].map(() => openDatabase(database.url, { observer }));
  t.teardown(() => Promise.all(processes.map((one) => one.close())).then(database.drop));
  await processes[0]?.migrate();
  failures.length = 0;
  const leases = processes.map((one) => one.lease("test", 60_000));
  for (let round = 0; round < 3; round++) {
    const held = await atOnce(3, async (index) => ({ index, isHeld: await leases[index]?.isHeld() }));
    const [holder, ...others] = held.filter(({ isHeld }) => isHeld);
    if (!holder) return t.fail();
    t.deepEqual(others, []);
    t.true(await leases[holder.index]?.isHeld());
    await leases[holder.index]?.release();
  }
  t.deepEqual(failures, []);
});
