import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { hasPgBouncer, startPgBouncer } from "../harness/database/pgbouncer.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";

export const databases = "all";

test.after.always(stopPrograms);

/** The sessions that all servers share, and what titles say about them. */
const POOLS = engine === "postgres" ? [2, 4] : [undefined];
// A wait for a lock or a session lasts from 5 to 30 s.
const START_MS = 20_000;
const WAIT_MS = 1_000;
const EVERY_MS = 50;

async function startPooled(t: ExecutionContext, poolSize: number | undefined, isEmpty: boolean) {
  const database = await createTestDatabase({ empty: isEmpty });
  const pooler = poolSize ? await startPgBouncer(database.url, { poolSize }) : undefined;
  t.teardown(async () => {
    await pooler?.stop();
    await database.drop();
  });
  const settings = {
    DATABASE_URL: pooler?.url ?? database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    PORT: "0",
    LOG_LEVEL: "warn",
  };
  return async () => {
    const server = startServer({ settings });
    t.teardown(() => server.stop());
    return { server, address: await addressOf(server) };
  };
}

/** Resolves to the milliseconds that a response waited for the database, at most, when the work is done. */
async function longestWaitDuring(address: string, work: Promise<unknown>): Promise<number> {
  let longest = 0;
  let isDone = false;
  const ask = async () => {
    while (!isDone) {
      // Both responses are late if other programs slow the process down.
      const [ready, alive] = await Promise.all([timeOf(`${address}/readyz`), timeOf(`${address}/healthz`)]);
      longest = Math.max(longest, ready - alive);
      await pause(EVERY_MS);
    }
  };
  await Promise.all([ask(), ask(), ask(), work.finally(() => (isDone = true))]);
  return longest;
}

async function timeOf(url: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(url);
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${body}`);
  return performance.now() - started;
}

async function startThree(start: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await Promise.all([start(), start(), start()]);
  return performance.now() - started;
}

for (const poolSize of POOLS) {
  const way = poolSize ? `, on PostgreSQL through PgBouncer with ${poolSize} sessions` : "";
  const together = `three servers start concurrently on an empty database${way}`;
  const beside = `three servers start beside a fourth, whose requests don't wait for them${way}`;
  if (poolSize && !hasPgBouncer) {
    skip(together, "pgbouncer is not installed");
    skip(beside, "pgbouncer is not installed");
    continue;
  }

  test.serial(together, async (t) => {
    const ms = await startThree(await startPooled(t, poolSize, true));
    t.log(`${Math.round(ms)} ms`);
    t.true(ms < START_MS, `${ms}`);
  });

  test.serial(beside, async (t) => {
    const start = await startPooled(t, poolSize, false);
    const { address } = await start();
    const starts = startThree(start).then((ms) => t.true(ms < START_MS, `${ms}`));
    const longest = await longestWaitDuring(address, starts);
    t.log(`longest wait: ${Math.round(longest)} ms`);
    t.true(longest < WAIT_MS, `${longest}`);
  });
}
