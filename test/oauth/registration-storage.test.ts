import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import test from "ava";
import { register, requestTokens } from "../harness/clients/oauth.ts";
import { startServiceWithDatabase } from "../harness/database/service.ts";
import { atOnce } from "../harness/database/storage.ts";

export const stage = "long";

const { service, knex } = await startServiceWithDatabase({ DYNAMIC_REGISTRATION: "stateless" });

const REGISTRATIONS = 4000;
const CONCURRENT = 20;
// If each client or each id were kept, the heap would grow by more.
const MAX_GROWTH_BYTES = 1_000_000;

/** Counts the rows of every table but that of leases: jobs in the background take and release those at any time. */
async function countRows(): Promise<Record<string, number>> {
  const named = knex("sqlite_master").where({ type: "table" }).whereNot({ name: "leases" });
  const tables: string[] = await named.pluck("name");
  const counts: Record<string, number> = {};
  for (const table of tables) {
    const [row] = await knex(table).count({ total: "*" });
    counts[table] = Number(row?.total);
  }
  return counts;
}

async function registerMany(prefix: string, count: number): Promise<void> {
  for (let first = 0; first < count; first += CONCURRENT)
    await atOnce(CONCURRENT, async (index) => {
      const client_name = `${prefix} ${first + index}`;
      const client = await register(service, { client_name, redirect_uris: ["http://127.0.0.1/callback"] });
      const fields = { grant_type: "refresh_token", refresh_token: "lgr_unknown" };
      const { body, text } = await requestTokens(service, client, fields);
      // The client is found before the token is not.
      if (body.error !== "invalid_grant") throw new Error(text);
    });
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
  await registerMany("Earlier", 1500); // fills the bounded cache of clients
  rows = await countRows();
  heap = await usedHeap();
});

test.serial("4,000 registrations leave nothing in memory", async (t) => {
  await registerMany("Later", REGISTRATIONS);
  const growth = (await usedHeap()) - heap;
  t.true(growth < MAX_GROWTH_BYTES, `${growth} bytes`);
});

test.serial("they leave no row in any table", async (t) => {
  t.true(Object.keys(rows).length > 15);
  t.deepEqual(await countRows(), rows);
});
