import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import test from "ava";
import { postRegistration, requestTokens } from "../../harness/clients/registration.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "long";

const { url, encryptionKey, database, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
  DYNAMIC_REGISTRATION: "stateless",
});
test.after.always(async () => {
  await service.close();
  await close();
});

const REGISTRATIONS = 10_000;
const CONCURRENT = 20;
// For one half. If each client or each id were kept, the heap would grow by more.
const MAX_GROWTH_BYTES = 1_000_000;

/** Counts the rows of every table but that of leases: jobs in the background take and release those at any time. */
async function countRows(): Promise<Record<string, number>> {
  const tables: string[] = await database
    .knex("sqlite_master")
    .where({ type: "table" })
    .whereNot({ name: "leases" })
    .pluck("name");
  const counts: Record<string, number> = {};
  for (const table of tables) {
    const [row] = await database.knex(table).count({ total: "*" });
    counts[table] = Number(row?.total);
  }
  return counts;
}

/** Registers clients that differ, and uses every `step`-th of them. */
async function registerMany(prefix: string, count: number, step: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const number = next++;
      const client_name = `${prefix} ${number}`;
      const { status, body } = await postRegistration(service, {
        client_name,
        redirect_uris: ["http://127.0.0.1/callback"],
      });
      if (status !== 201) throw new Error(`${client_name}: ${status}`);
      if (number % step > 0) continue;
      const client = { clientId: String(body.client_id) };
      const refused = await requestTokens(service, client, {
        grant_type: "refresh_token",
        refresh_token: "lgr_unknown",
      });
      // The client is found before the token is not.
      if (refused.body.error !== "invalid_grant") throw new Error(refused.text);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, worker));
}

async function usedHeap(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  // What finalizers release is collected by the next pass.
  for (let pass = 0; pass < 5; pass++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().heapUsed;
}

let rows: Awaited<ReturnType<typeof countRows>>;
let heap: number;
test.before(async () => {
  await registerMany("Earlier", 1500, 1); // fills the bounded cache of clients
  rows = await countRows();
  heap = await usedHeap();
});

// Serial: the tests share the memory.
for (const half of ["First", "Second"]) {
  test.serial(`${half} half of 10,000 registrations: they leave nothing in memory`, async (t) => {
    await registerMany(half, REGISTRATIONS / 2, 4);
    const growth = (await usedHeap()) - heap;
    t.true(growth < MAX_GROWTH_BYTES, `${growth} bytes`);
    heap += growth;
  });
}

test.serial("10,000 registrations leave no row in any table", async (t) => {
  t.true(Object.keys(rows).length > 15);
  t.deepEqual(await countRows(), rows);
});
