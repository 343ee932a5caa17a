import { randomBytes } from "node:crypto";
import { firstEventIdAt } from "../../../adapters/database/partitions/tables.ts";
import type { EventRow } from "../../../adapters/database/tables.ts";
import { tokenTimeAt } from "../../../adapters/database/token-time.ts";
import type { TestStorage } from "./storage.ts";

export const HOUR_MS = 60 * 60 * 1000;
export const DAY_MS = 24 * HOUR_MS;

/** Lists the partitions of a table. */
export async function partitionsOf({ database }: TestStorage, table: string): Promise<string[]> {
  const { rows } = await database.knex.raw(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = to_regclass(?) order by 1",
    [table],
  );
  return rows.map(({ name }: { name: string }) => name);
}

/** Returns a date as the names of partitions contain it. */
export const date = (time: number) => new Date(time).toISOString().slice(0, 10).replaceAll("-", "");

/** Inserts tokens as they are issued at a time, for some hours, and returns their keys. */
export async function insertTokensAt(
  { database: { knex } }: TestStorage,
  time: number,
  { count = 3, hours = 1 } = {},
): Promise<string[]> {
  const keys = Array.from({ length: count }, () => tokenTimeAt(time) + randomBytes(17).toString("hex"));
  const row = { kind: "ClientCredentials", payload: "{}", expires_at: time + hours * HOUR_MS };
  await knex("tokens").insert(keys.map((id_hash) => ({ ...row, id_hash }) as never));
  return keys;
}

let events = 0;

/** Inserts events with deliveries as they are written at a time. */
export async function insertAt(
  { database: { knex } }: TestStorage,
  time: number,
  count = 3,
  audited = false,
) {
  const ids = Array.from({ length: count }, () => {
    const end = String(++events).padStart(10, "0");
    return firstEventIdAt(time).slice(0, -10) + end;
  });
  const times = { created_at: time, expires_at: time + 30 * DAY_MS };
  const event = { organization_id: "org_1", audited, type: "link.clicked", actor: "usr_1", data: "{}" };
  const delivery = { webhook_id: "whk_1", status: "succeeded", attempts: 1, log: "[]" };
  await knex("events").insert(ids.map((id) => ({ ...event, ...times, id }) as EventRow));
  await knex("deliveries").insert(ids.map((event_id) => ({ ...delivery, ...times, event_id }) as never));
  return ids;
}
