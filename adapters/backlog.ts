import { readClock } from "./database/clock.ts";
import type { Database } from "./database/index.ts";
import { findOldestExpiry } from "./database/purge-expired.ts";

/** Work that waits for any process, and how long the oldest of it has waited. */
export type Waiting = { count: number; seconds: number };

/** What waits in the database, whichever process it is for. */
export type Backlog = {
  /** Webhook deliveries that are due. Counts up to `COUNT_MAX`. */
  deliveries: Waiting;
  /** Emails that are due. Counts up to `COUNT_MAX`. */
  mails: Waiting;
  /** How long the oldest expired row has waited for the purge. */
  purgeSeconds: number;
  /** How far this machine's clock is ahead of the database's, within the time that the query took. */
  clockAheadSeconds: number;
};

/** Counting more takes longer and says no more. */
export const COUNT_MAX = 10_000;

/** Reads what waits in the database, by indexes only. */
export async function readBacklog(database: Database): Promise<Backlog> {
  // One after the other, on one connection.
  const now = Date.now();
  const deliveries = await readWaiting(database, "deliveries", now);
  const mails = await readWaiting(database, "mails", now);
  const purgeSeconds = secondsSince(await findOldestExpiry(database, now), now);
  return { deliveries, mails, purgeSeconds, clockAheadSeconds: await readClockAhead(database) };
}

async function readWaiting({ knex }: Database, table: "deliveries" | "mails", now: number): Promise<Waiting> {
  const due = knex(table).where("due_at", "<=", now).orderBy("due_at").limit(COUNT_MAX).select("due_at");
  const [row] = await knex.from(due.as("due")).count({ count: "*" }).min({ oldest: "due_at" });
  return { count: Number(row?.count), seconds: secondsSince(row?.oldest, now) };
}

function secondsSince(time: unknown, now: number): number {
  return time === null || time === undefined ? 0 : Math.max(0, now - Number(time)) / 1000;
}

/** Returns by how many seconds this machine's clock is ahead of the database's; 0 within the time that the query took. */
export async function readClockAhead(database: Database): Promise<number> {
  const before = Date.now();
  const time = await readClock(database);
  if (time < before) return (before - time) / 1000;
  return Math.min(0, Date.now() - time) / 1000;
}
