import type { Engine } from "./database/engine.ts";
import type { Database } from "./database/index.ts";
import { findOldestExpiry } from "./database/purge-expired.ts";

const NOW: Record<Engine, string> = {
  sqlite: "unixepoch('subsec')",
  postgres: "extract(epoch from clock_timestamp())::float8",
  mysql: "unix_timestamp(sysdate(3))",
};

/** Counting more takes longer and says no more. */
export const COUNT_MAX = 10_000;

export type Backlog = Awaited<ReturnType<typeof readBacklog>>;

/** Reads what waits in the database, by indexes only, and how far this machine's clock is ahead of the database's. */
export async function readBacklog(database: Database) {
  // One after the other, on one connection.
  const now = Date.now();
  const deliveries = await readWaiting(database, "deliveries", now);
  const mails = await readWaiting(database, "mails", now);
  const purgeSeconds = secondsSince(await findOldestExpiry(database, now), now);
  return { deliveries, mails, purgeSeconds, clockAheadSeconds: await readClockAhead(database) };
}

async function readWaiting({ knex }: Database, table: "deliveries" | "mails", now: number) {
  const due = knex(table).where("due_at", "<=", now).orderBy("due_at").limit(COUNT_MAX).select("due_at");
  const [row] = await knex.from(due.as("due")).count({ count: "*" }).min({ oldest: "due_at" });
  return { count: Number(row?.count), seconds: secondsSince(row?.oldest, now) };
}

function secondsSince(time: unknown, now: number): number {
  return time === null || time === undefined ? 0 : Math.max(0, now - Number(time)) / 1000;
}

/** Returns seconds; 0 if the difference is within the time that the query took. */
export async function readClockAhead(database: Database): Promise<number> {
  const before = Date.now();
  const time = await readClock(database);
  if (time < before) return (before - time) / 1000;
  return Math.min(0, Date.now() - time) / 1000;
}

/** Returns the time by the clock of the database server, in milliseconds since 1970. */
export async function readClock({ knex, engine }: Pick<Database, "knex" | "engine">): Promise<number> {
  const [row] = await knex.select({ now: knex.raw(NOW[engine]) });
  return Number(row.now) * 1000;
}
