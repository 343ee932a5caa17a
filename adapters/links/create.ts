import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { Link, LinkConflict, LinkStore } from "../../resources/links/types.ts";
import { newId, timeOfId } from "../crypto/ids.ts";
import { isCheckViolation, isDuplicate, violatedConstraint } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { Row } from "../database/sqlite/group-state.ts";
import { chainInGroup } from "../events/chain-in-group.ts";
import { deliverInGroup } from "../events/deliver-in-group.ts";
import { addDeliveries, deliveriesOf, EVENT_COLUMNS, eventRow, type Outbox } from "../events/outbox.ts";
import { linkCreated } from "./events.ts";
import { ROW_COLUMNS, storedBytes, toRow } from "./row.ts";
import { addUsage, type LimitsOf, reserve, type Usage, usageCounter } from "./usage.ts";

// The search index may contain the links around an id of this age. A retried request creates links with such ids.
const OLD_ID_MS = 60_000;
// A link without room fails its batch, whose other links are then stored one by one. So links of organizations that are
// near their quota are not batched.
const MAX_NEAR_QUOTA = 10_000;
const NEAR_QUOTA_MS = 10_000;
// Each attempt follows a new share, which other links may use up first.
const MAX_ATTEMPTS = 4;
const NOTHING: Usage = { links: 0, link_bytes: 0 };

/** The rows of a new link. `change` tells the search index of a link that it may have passed over. */
type NewRows = { link: Row; change?: Row; event: Row; usage: { organization_id: string } & Usage };

/** Prepares the creation of links. Links of concurrent requests are stored together. */
export function prepareCreate(database: Database, outbox: Outbox, limitsOf: LimitsOf): LinkStore["create"] {
  const { engine, inserter, transaction } = database;
  const links = { name: "links", columns: ROW_COLUMNS };
  const changes = { name: "link_search_changes", columns: ["organization_id", "link_id", "version"] };
  const events = {
    name: "events",
    columns: [...EVENT_COLUMNS, ...outbox.trace.columns, "seq", "hash"],
    state: chainInGroup,
  };
  const follow = (q: Knex, ids: unknown[]) => addDeliveries(q, engine, ids);
  const followRecords = (rows: string) => deliveriesOf(engine, rows);
  const deliveries = { follow, followState: deliverInGroup, followRecords };
  const rest = { uniqueColumn: "slug", ...deliveries, counter: usageCounter() };
  const insert = inserter({ tables: [links, events], ...rest });
  const insertChanged = inserter({ tables: [links, changes, events], ...rest });
  const shares = createTurns();
  const nearQuota = new LRUCache<string, true>({ max: MAX_NEAR_QUOTA, ttl: NEAR_QUOTA_MS });

  async function store(rows: NewRows) {
    const { link, change, event, usage } = rows;
    const organizationId = usage.organization_id;
    for (let attempt = 0; attempt < MAX_ATTEMPTS && !nearQuota.has(organizationId); attempt++) {
      try {
        return await (change ? insertChanged(link, change, event, usage) : insert(link, event, usage));
      } catch (error) {
        if (!isCheckViolation(error)) throw error;
        await shares.renew(organizationId, () => renewShares(organizationId));
      }
    }
    return shares.inTurn(organizationId, () => storeSingle(rows));
  }

  /** Shares the rest of the quota anew, after a share was used up. */
  async function renewShares(organizationId: string) {
    const isNear = await transaction((trx) => reserve(trx, organizationId, NOTHING, limitsOf));
    if (isNear) nearQuota.set(organizationId, true);
  }

  /** Stores a link of an organization that is near its quota. */
  function storeSingle({ link, change, event, usage }: NewRows) {
    const { organization_id: organizationId, ...added } = usage;
    return transaction(async (trx) => {
      await reserve(trx, organizationId, added, limitsOf);
      await trx("links").insert(link as never);
      if (change) await trx("link_search_changes").insert(change as never);
      await trx("events").insert(event as never);
      await addDeliveries(trx, engine, [event.id]);
      await addUsage(trx, organizationId, added, 0);
    });
  }

  return async (organizationId, actor, fields, givenId) => {
    const now = Date.now();
    const id = givenId ?? newId("lnk");
    const link: Link = {
      ...fields,
      id,
      organizationId,
      clicks: 0,
      lastClickedAt: null,
      version: 1,
      createdBy: actor.id,
      createdVia: actor.via ?? null,
      createdAt: now,
      updatedAt: now,
      disabledAt: null,
      disabledReason: null,
    };
    const row = toRow(link);
    const rows: NewRows = {
      link: row,
      event: eventRow(actor, linkCreated(link), outbox.trace.of("link.created")),
      usage: { organization_id: organizationId, links: 1, link_bytes: storedBytes(row) },
    };
    if (givenId && timeOfId(id) <= now - OLD_ID_MS) {
      rows.change = { organization_id: organizationId, link_id: id, version: link.version };
    }
    try {
      await store(rows);
    } catch (error) {
      return toConflict(error);
    }
    outbox.notify();
    return link;
  };
}

/** Runs work of each organization one after the other, so it doesn't take up the connections of the others. */
function createTurns() {
  const last = new Map<string, Promise<unknown>>();
  const renewals = new Map<string, Promise<void>>();

  async function inTurn<T>(organizationId: string, run: () => Promise<T>): Promise<T> {
    const turn = (last.get(organizationId) ?? Promise.resolve()).then(run);
    const settled = turn.catch(() => {});
    last.set(organizationId, settled);
    settled.then(() => last.get(organizationId) === settled && last.delete(organizationId));
    return turn;
  }

  return {
    inTurn,
    /** Runs a renewal that all who wait for it share. */
    renew(organizationId: string, run: () => Promise<void>): Promise<void> {
      const renewal =
        renewals.get(organizationId) ??
        inTurn(organizationId, run).finally(() => renewals.delete(organizationId));
      renewals.set(organizationId, renewal);
      return renewal;
    },
  };
}

/** Returns the unique field that a duplicate link conflicts in. */
export function toConflict(error: unknown): LinkConflict {
  if (!isDuplicate(error)) throw error;
  return { taken: violatedConstraint(error).includes("external_id") ? "external_id" : "slug" };
}
