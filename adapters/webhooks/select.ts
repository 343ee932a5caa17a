import type { LeaseLimits } from "../../resources/webhooks/types.ts";
import type { Database } from "../database/index.ts";
import { allot } from "./allot.ts";
import {
  type Due,
  type DueWebhook,
  findDue,
  findDueWebhooks,
  hasTooManyDue,
  type Key,
  readKeys,
} from "./due.ts";
import { heldUntil, hold } from "./hold.ts";

// How many deliveries of a webhook are held in one statement.
const HELD_MAX = 200;

/** Selects the due deliveries that fit within the limits, of each organization in turn. */
export type Select = (limits: LeaseLimits, now: number) => Promise<Key[]>;

/** Creates the selection of one process, which remembers whose turn it is. */
export function createSelect({ knex, engine }: Pick<Database, "knex" | "engine">): Select {
  let lastOrganization = "";
  let lastWebhook = "";
  let hadTooMany = false;

  return async function select(limits, now) {
    const due = hadTooMany && (await hasTooManyDue(knex, now)) ? undefined : await findDue(knex, now);
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
    const { held = [], open = [] } = Object.groupBy(webhooks, (webhook) => stateOf(webhook, now));
    await holdAll(held, byWebhook, now);
    const available = open.map((webhook) => ({
      ...webhook,
      available: byWebhook ? (byWebhook.get(webhook.id)?.length ?? 0) : limits.max,
    }));
    const { counts, last } = allot(available, limits, lastOrganization);
    lastOrganization = last;
    if (!byWebhook) return readKeys(knex, counts, now);
    return [...counts].flatMap(([id, count]) => byWebhook.get(id)?.slice(0, count) ?? []);
  }

  async function holdAll(webhooks: DueWebhook[], byWebhook: Map<string, Key[]> | undefined, now: number) {
    for (const webhook of webhooks) {
      const keys =
        byWebhook?.get(webhook.id) ?? (await readKeys(knex, new Map([[webhook.id, HELD_MAX]]), now));
      await hold(knex, keys, heldUntil(webhook, now) as number, now);
    }
  }
}

function stateOf(webhook: DueWebhook, now: number): "held" | "blocked" | "open" {
  if (heldUntil(webhook, now) !== undefined) return "held";
  return webhook.blockedUntil !== null && webhook.blockedUntil > now ? "blocked" : "open";
}
