import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Link, LinkChanges, LinkFields, LinkStore } from "../../resources/links/types.ts";
import { isMissingValue } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import type { ClickCounter } from "./click-counter.ts";
import type { ClickStats } from "./click-stats.ts";
import { prepareCreate, toConflict } from "./create.ts";
import { linkDeleted, linkUpdated } from "./events.ts";
import { prepareResolve } from "./resolve.ts";
import { ERASED, searchedText, storedBytes, toColumns, toLink, toRow } from "./row.ts";
import { type SearchLinks, SearchTimeout } from "./search.ts";
import { addUsage, exceededQuota, type LimitsOf, readUsage } from "./usage.ts";

/** Creates the link store of a database. */
export function createLinkStore(
  database: Database,
  outbox: Outbox,
  clicks: ClickCounter,
  stats: ClickStats,
  search: SearchLinks,
  limitsOf: LimitsOf,
): LinkStore {
  const { knex } = database;

  async function findBy(organizationId: string, key: { id: string } | { external_id: string }) {
    await clicks.settled();
    return toLink(await liveLinks(knex, organizationId).where(key).first());
  }

  return {
    create: prepareCreate(database, outbox, limitsOf),
    find: (organizationId, id) => findBy(organizationId, { id }),
    findByExternalId: (organizationId, externalId) => findBy(organizationId, { external_id: externalId }),
    list: listLinks(database, clicks, search),
    update: updateLink(database, outbox, clicks, limitsOf),
    remove: removeLink(database, outbox, clicks, limitsOf),
    resolve: prepareResolve(database),
    click: prepareClick(database, clicks, stats),
    analytics: stats.read,
    usage: (organizationId) => readUsage(knex, organizationId),
  };
}

// A change can exceed only this quota.
const GROWN = { links: 0, link_bytes: 1 };

function listLinks(database: Database, clicks: ClickCounter, search: SearchLinks): LinkStore["list"] {
  return async (organizationId, filter, limit, before) => {
    await clicks.settled();
    const { knex } = database;
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    const query = liveLinks(knex, organizationId).orderBy("id", "desc").limit(limit);
    if (before) query.where("id", "<", before);
    try {
      const rows = await (isFiltered ? search(organizationId, filter, limit, before) : query);
      return rows.map((row) => toLink(row) as Link);
    } catch (error) {
      if (error instanceof SearchTimeout) return "timeout";
      throw error;
    }
  };
}

function updateLink(
  database: Database,
  outbox: Outbox,
  clicks: ClickCounter,
  limitsOf: LimitsOf,
): LinkStore["update"] {
  return async (organizationId, id, changes, actor, version) => {
    await clicks.settled();
    try {
      return await database.transaction(async (trx) => {
        const link = liveLinks(trx, organizationId).where({ id });
        const before = toLink(await link.clone().forUpdate().first());
        if (!before) return undefined;
        if (before.disabledAt !== null) return "disabled";
        if (version !== undefined && before.version !== version) return "stale";
        const changed = changedFields(before, changes);
        const columns = toColumns(changed);
        if (Object.keys(columns).length === 0) return before;
        const revision = { version: before.version + 1, updatedAt: Date.now() };
        const after = { ...before, ...changed, ...revision };
        const { version: next, updatedAt: updated_at } = revision;
        await link.update({ ...columns, searched: searchedText(after), version: next, updated_at });
        await outbox.record(trx, actor, linkUpdated(after, changed, Object.keys(columns)));
        const link_bytes = storedBytes(toRow(after)) - storedBytes(toRow(before));
        if (link_bytes !== 0) await addUsage(trx, organizationId, { links: 0, link_bytes }, limitsOf);
        return after;
      });
    } catch (error) {
      if (isMissingValue(error)) throw await exceededQuota(database.knex, organizationId, GROWN, limitsOf);
      return toConflict(error);
    }
  };
}

function removeLink(
  database: Database,
  outbox: Outbox,
  clicks: ClickCounter,
  limitsOf: LimitsOf,
): LinkStore["remove"] {
  return async (organizationId, id, actor, version) => {
    await clicks.settled();
    return database.transaction(async (trx) => {
      const link = liveLinks(trx, organizationId).where({ id });
      const before = toLink(await link.clone().forUpdate().first());
      if (!before) return false;
      if (version !== undefined && before.version !== version) return "stale";
      await link.update({ ...ERASED, deleted_at: Date.now() });
      await addUsage(trx, organizationId, { links: -1, link_bytes: -storedBytes(toRow(before)) }, limitsOf);
      await outbox.record(trx, actor, linkDeleted(before));
      return true;
    });
  };
}

function prepareClick({ prepare }: Database, clicks: ClickCounter, stats: ClickStats): LinkStore["click"] {
  const countBelowLimit = prepare<number, "id" | "clickedAt">((q, { id, clickedAt }) =>
    q("links")
      .where({ id })
      .whereNull("deleted_at")
      .where("clicks", "<", q.ref("max_clicks"))
      .update({ clicks: q.raw("clicks + 1"), last_clicked_at: clickedAt }),
  );
  return async (link, click) => {
    if (link.maxClicks === null) clicks.count(link, click);
    else if (await countBelowLimit({ id: link.id, clickedAt: click.clickedAt }))
      clicks.recordEvent(link, click);
    else return false;
    stats.add(link, click);
    return true;
  };
}

/** Queries the links of an organization that aren't deleted. */
function liveLinks(q: Knex, organizationId: string) {
  return q("links").where({ organization_id: organizationId }).whereNull("deleted_at");
}

/** Returns the changes whose values differ from those of the link. */
function changedFields(link: Link, changes: LinkChanges): Partial<LinkFields> {
  const differs = ([name, value]: [string, unknown]) => !isDeepStrictEqual(link[name as keyof Link], value);
  return Object.fromEntries(Object.entries(changes).filter(differs));
}
