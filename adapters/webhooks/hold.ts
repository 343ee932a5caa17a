import type { Knex } from "knex";
import { padded } from "../database/padded.ts";
import type { DueWebhook, Key } from "./due.ts";

/** Returns until when the deliveries of a webhook wait; undefined if they may be sent. */
export function heldUntil({ pausedUntil }: DueWebhook, now: number): number | undefined {
  return pausedUntil !== null && pausedUntil > now ? pausedUntil : undefined;
}

/** Postpones due deliveries. Leased ones aren't due. */
export async function hold(knex: Knex, keys: Key[], until: number, now: number): Promise<void> {
  if (keys.length === 0) return;
  await knex("deliveries")
    .whereIn(["webhook_id", "event_id"], pairsOf(keys))
    .where("due_at", "<=", now)
    .update({ due_at: until });
}

/** Returns keys for a comparison with two columns. */
export function pairsOf(keys: Key[]): string[][] {
  return padded(keys).map(({ webhook_id, event_id }) => [webhook_id, event_id]);
}
