import { decodeTime, encodeTime } from "ulid";
import { tokenTimeAt } from "../token-time.ts";

/** The UTC day or month that a partition holds. */
export type Unit = "day" | "month";

/** A table that may be partitioned by time on PostgreSQL. Its keys contain the time, so its primary key stays as it is. */
export type PartitionedTable = {
  name: "tokens" | "deliveries" | "events" | "click_stats";
  /** The column of the primary key that contains the time. */
  key: string;
  /** What a partition holds, unless an operator chooses otherwise. */
  unit: Unit;
  /** Returns the first key of a time. */
  keyAt(time: number): string | number;
  /** Returns the time of a bound of a partition. */
  timeOf(key: string): number;
  /** Whether the old table becomes the default partition, because not all of its keys contain a time. */
  isPartlyTimed: boolean;
  /** Whether rows expire. Others are kept. */
  expires: boolean;
  /** Whether the command has to name the table. */
  onRequest: boolean;
  /** Conditions for rows that keep their partition, even if they have expired. Each is served by an index. */
  kept: string[];
  /** A unique index without the key, which each partition has for itself: its suffix, and what follows the table's name. */
  ownIndex?: { suffix: string; definition: string };
};

const DAY_MS = 24 * 60 * 60 * 1000;

const byEventId = { keyAt: firstEventIdAt, timeOf: (key: string) => decodeTime(key.slice("evt_".length)) };
const expiring = { isPartlyTimed: false, expires: true, onRequest: false, kept: [] as string[] };

/** The tables that `partitionTables` knows, in the order of their purge. */
export const PARTITIONED: readonly PartitionedTable[] = [
  {
    ...expiring,
    name: "tokens",
    key: "id_hash",
    unit: "day",
    keyAt: tokenTimeAt,
    timeOf: (key) => Number.parseInt(key, 36),
    // Those of codes, of used JWTs, and of tokens until a day after an upgrade don't.
    isPartlyTimed: true,
    // Each introspection then locks all partitions.
    onRequest: true,
  },
  { ...expiring, ...byEventId, name: "deliveries", key: "event_id", unit: "day" },
  {
    ...expiring,
    ...byEventId,
    name: "events",
    key: "id",
    // The audit log is kept for up to two years. With 730 partitions, PostgreSQL takes a third of a second to plan a query
    // of it, and 4,400 locks, of 6,400 by default. Operators may choose days.
    unit: "month",
    // The audit log is deleted by `purgeAuditLogs`, which remembers where the rest of each chain starts.
    kept: ["seq is not null", "audited = true and seq is null"],
    // The locked head of a chain decides who appends to it. The index is a further guard.
    ownIndex: { suffix: "chain", definition: "(organization_id, seq) where seq is not null" },
  },
  {
    name: "click_stats",
    key: "day",
    unit: "month",
    keyAt: (time) => Math.floor(time / DAY_MS),
    timeOf: (key) => Number(key) * DAY_MS,
    isPartlyTimed: false,
    expires: false,
    onRequest: true,
    kept: [],
  },
];

/** Returns the first ID of events of a time. */
export function firstEventIdAt(time: number): string {
  return `evt_${encodeTime(time)}${"0".repeat(16)}`;
}

/** Returns the start of the day or month that contains a time. */
export function startOfUnit(unit: Unit, time: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), unit === "day" ? date.getUTCDate() : 1);
}

/** Returns the end of the day or month that contains a time. */
export function endOfUnit(unit: Unit, time: number): number {
  if (unit === "day") return startOfUnit(unit, time) + DAY_MS;
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
