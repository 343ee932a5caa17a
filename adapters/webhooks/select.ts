import type { LeaseLimits } from "../../resources/webhooks/types.ts";
import type { Database } from "../database/index.ts";
import { allot } from "./allot.ts";
import {
  type Due,
  type DueWebhook,
  findDueWebhooks,
  hasTooManyDue,
  type Key,
  prepareFindDue,
  readKeys,
} from "./due.ts";
import { heldUntil, hold } from "./hold.ts";
import { holdUnverified } from "./verification.ts";

// How many deliveries of a webhook are held in one statement.
const HELD_MAX = 200;
// How many unverified webhooks with too many due deliveries are read at a time, and how many deliveries of each.
const UNVERIFIED_MAX = 10;
const UNVERIFIED_READ_MAX = 100;

/** Selects the due deliveries that fit within the limits, of each organization in turn. */
export type Select = (limits: LeaseLimits, now: number) => Promise<Key[]>;

/** Creates the selection of one process, which remembers whose turn it is. */
export function createSelect({
  knex,
  engine,
  transaction,
  prepare,
}: Pick<Database, "knex" | "engine" | "transaction" | "prepare">): Select {
  const findDue = prepareFindDue({ prepare });
  let lastOrganization = "";
  let lastWebhook = "";
  let hadTooMany = false;

  return async function select(limits, now) {
    const due = hadTooMany && (await hasTooManyDue(knex, now)) ? undefined : await findDue(now);
    hadTooMany = due === undefined;
    if (due) return selectFrom(due, limits, now);
    // Visit webhooks in turn, each at most once.
    const start = lastWebhook;
    let hasWrapped = start === "";
    for (;;) {
      const page = await findDueWebhooks(knex, engine, now, lastWebhook);
      lastWebhook = page.next ?? "";
      const keys = await selectFrom(page, limits, now);
      if (keys.length > 0) return keys;
      const isAtStart = lastWebhook === "" || (start !== "" && lastWebhook >= start);
      if (hasWrapped && isAtStart) return [];
      hasWrapped ||= lastWebhook === "";
    }
  };

  async function selectFrom({ webhooks, keys }: Due, limits: LeaseLimits, now: number): Promise<Key[]> {
    const byWebhook = keys && Map.groupBy(keys, ({ webhook_id }) => webhook_id);
    const {
      held = [],
      unverified = [],
      open = [],
    } = Object.groupBy(webhooks, (webhook) => stateOf(webhook, now));
    await holdAll(held, byWebhook, now);
    const verifications = await holdAllUnverified(unverified, byWebhook, now);
    const available = [
      ...open.map((webhook) => ({
        ...webhook,
        available: byWebhook ? (byWebhook.get(webhook.id)?.length ?? 0) : limits.max,
      })),
      ...unverified
        .filter((webhook) => verifications.has(webhook.id) && !isBlocked(webhook, now))
        .map((webhook) => ({ ...webhook, available: 1 })),
    ];
    const { counts, last } = allot(available, limits, lastOrganization);
    lastOrganization = last;
    const known = [...counts].flatMap(
      ([id, count]) => verifications.get(id) ?? byWebhook?.get(id)?.slice(0, count) ?? [],
    );
    if (byWebhook) return known;
    for (const id of verifications.keys()) counts.delete(id);
    return [...known, ...(await readKeys(knex, counts, now))];
  }

  /** Holds the due deliveries of unverified webhooks, except those that verify them, which are returned by webhook. */
  async function holdAllUnverified(
    webhooks: DueWebhook[],
    byWebhook: Map<string, Key[]> | undefined,
    now: number,
  ): Promise<Map<string, Key[]>> {
    const ids = webhooks.map(({ id }) => id);
    const counts = () => new Map(ids.slice(0, UNVERIFIED_MAX).map((id) => [id, UNVERIFIED_READ_MAX]));
    const keys = byWebhook
      ? ids.flatMap((id) => byWebhook.get(id) ?? [])
      : await readKeys(knex, counts(), now);
    const verifying = new Set(webhooks.map(({ verificationEventId }) => verificationEventId));
    const isVerifying = ({ event_id }: Key) => verifying.has(event_id);
    const waiting = keys.filter((key) => !isVerifying(key));
    // After a power failure, deliveries that are lost with their hold are held again.
    if (waiting.length > 0)
      await transaction((trx) => holdUnverified(trx, engine, waiting, now), { isDurable: false });
    return Map.groupBy(keys.filter(isVerifying), ({ webhook_id }) => webhook_id);
  }

  async function holdAll(webhooks: DueWebhook[], byWebhook: Map<string, Key[]> | undefined, now: number) {
    for (const webhook of webhooks) {
      const keys =
        byWebhook?.get(webhook.id) ?? (await readKeys(knex, new Map([[webhook.id, HELD_MAX]]), now));
      await hold(knex, keys, heldUntil(webhook, now) as number, now);
    }
  }
}

function stateOf(webhook: DueWebhook, now: number): "held" | "unverified" | "blocked" | "open" {
  if (heldUntil(webhook, now) !== undefined) return "held";
  // Once the time for the verification has ended, the deliveries that waited for it fail.
  if ((webhook.verificationExpiresAt ?? 0) > now) return "unverified";
  return isBlocked(webhook, now) ? "blocked" : "open";
}

function isBlocked({ blockedUntil }: DueWebhook, now: number): boolean {
  return blockedUntil !== null && blockedUntil > now;
}
