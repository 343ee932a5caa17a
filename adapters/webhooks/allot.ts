import type { LeaseLimits } from "../../resources/webhooks/types.ts";
import type { DueWebhook } from "./due.ts";

/** A webhook and how many of its deliveries are available. */
export type Available = DueWebhook & { available: number };

/**
 * Divides the capacity of a process among webhooks: one delivery of each organization in turn, starting after `after`, and
 * within an organization one of each webhook in turn. Returns the number of deliveries per webhook, and the last organization.
 */
export function allot(
  webhooks: Available[],
  limits: LeaseLimits,
  after: string,
): { counts: Map<string, number>; last: string } {
  const counts = new Map<string, number>();
  const ledger = createLedger(limits);
  let turns = organizationsAfter(webhooks, after);
  let last = after;
  while (turns.length > 0 && ledger.total() < limits.max) {
    turns = turns.filter((queue) => {
      if (ledger.total() >= limits.max) return false;
      for (let left = queue.length; left > 0; left--) {
        const webhook = queue.shift() as Available;
        const count = counts.get(webhook.id) ?? 0;
        if (count >= webhook.available || !ledger.take(webhook)) continue;
        counts.set(webhook.id, count + 1);
        last = organizationOf(webhook);
        queue.push(webhook);
        return true;
      }
      return false;
    });
  }
  return { counts, last };
}

/** Groups webhooks by organization, ordered by ID and starting after `last`. */
function organizationsAfter(webhooks: Available[], last: string): Available[][] {
  const groups = Map.groupBy(webhooks, organizationOf);
  const ordered = [...groups].sort(([one], [other]) => (one < other ? -1 : 1));
  const start = ordered.findIndex(([id]) => id > last);
  if (start < 0) return ordered.map(([, queue]) => queue);
  return [...ordered.slice(start), ...ordered.slice(0, start)].map(([, queue]) => queue);
}

/** Returns the organization of a webhook, or the ID of a deleted webhook. */
function organizationOf({ organizationId, id }: DueWebhook): string {
  return organizationId ?? id;
}

/** Counts what is in flight or allotted, against the limits. */
function createLedger({ max, perWebhook, perHost, perOrganization, failing, inFlight, slow }: LeaseLimits) {
  const counts = new Map(inFlight);
  let total = 0;
  let failingTotal = 0;
  return {
    total: () => total,

    /** Takes one place; returns whether there was one. */
    take({ id, host, organizationId, failingSince, slowSince }: DueWebhook): boolean {
      const isFailing = failingSince !== null || slowSince !== null || slow.has(id);
      const used: [key: string, limit: number][] = [
        [id, isFailing ? failing.perWebhook : perWebhook],
        [`${host}`, perHost],
        [`${organizationId}`, perOrganization],
      ];
      if (isFailing)
        used.push(
          [`failing ${host}`, failing.perHost],
          [`failing ${organizationId}`, failing.perOrganization],
        );
      if (total >= max || (isFailing && failingTotal >= failing.max)) return false;
      if (used.some(([key, limit]) => (counts.get(key) ?? 0) >= limit)) return false;
      for (const [key] of used) counts.set(key, (counts.get(key) ?? 0) + 1);
      total++;
      if (isFailing) failingTotal++;
      return true;
    },
  };
}
