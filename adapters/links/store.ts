import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { EventType } from "../../resources/events/types.ts";
import type {
  Link,
  LinkChanges,
  LinkConflict,
  LinkFields,
  LinkStore,
  ResolvedLink,
} from "../../resources/links/types.ts";
import { newId } from "../crypto/ids.ts";
import { containsText, isDuplicate, violatedConstraint } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { unplannedParameter } from "../database/prepared-statements.ts";
import { addDeliveries, type DomainEvent, EVENT_COLUMNS, eventRow, type Outbox } from "../events/outbox.ts";
import type { ClickCounter } from "./click-counter.ts";
import type { ClickStats } from "./click-stats.ts";
import { ROW_COLUMNS, tagPattern, toColumns, toLink, toRow } from "./row.ts";

/** Creates the link store of a database. */
export function createLinkStore(
  database: Database,
  outbox: Outbox,
  clicks: ClickCounter,
  stats: ClickStats,
): LinkStore {
  const { knex } = database;

  async function findBy(organizationId: string, key: { id: string } | { external_id: string }) {
    await clicks.settled();
    return toLink(await liveLinks(knex, organizationId).where(key).first());
  }

  return {
    create: prepareCreate(database, outbox),
    find: (organizationId, id) => findBy(organizationId, { id }),
    findByExternalId: (organizationId, externalId) => findBy(organizationId, { external_id: externalId }),
    list: listLinks(database, clicks),
    update: updateLink(database, outbox, clicks),
    remove: removeLink(database, outbox, clicks),
    resolve: prepareResolve(database),
    click: prepareClick(database, clicks, stats),
    analytics: stats.read,
    async count(organizationId) {
      const [row] = await liveLinks(knex, organizationId).count({ total: "*" });
      return Number(row?.total);
    },
  };
}

function prepareCreate({ inserter, engine }: Database, outbox: Outbox): LinkStore["create"] {
  const insert = inserter({
    tables: [
      { name: "links", columns: ROW_COLUMNS },
      { name: "events", columns: EVENT_COLUMNS },
    ],
    uniqueColumn: "slug",
    follow: (q, ids) => addDeliveries(q, engine, ids),
  });
  return async (organizationId, actor, fields, id = newId("lnk")) => {
    const now = Date.now();
    const link: Link = {
      ...fields,
      id,
      organizationId,
      clicks: 0,
      lastClickedAt: null,
      version: 1,
      createdBy: actor.id,
      createdAt: now,
      updatedAt: now,
    };
    try {
      await insert(toRow(link), eventRow(actor, linkEvent("link.created", link)));
    } catch (error) {
      return toConflict(error);
    }
    outbox.notify();
    return link;
  };
}

function listLinks({ knex, engine }: Database, clicks: ClickCounter): LinkStore["list"] {
  return async (organizationId, { search, tag, archived }, limit, before) => {
    await clicks.settled();
    const query = liveLinks(knex, organizationId).orderBy("id", "desc").limit(limit);
    if (before) query.where("id", "<", before);
    if (archived !== undefined) query.where({ archived });
    if (tag !== undefined) query.whereRaw(containsText(engine), ["tags", tagPattern(tag)]);
    if (search !== undefined) query.where((clause) => matchAnyText(clause, likePattern(search)));
    return (await query).map((row) => toLink(row) as Link);
  };
}

function updateLink({ transaction }: Database, outbox: Outbox, clicks: ClickCounter): LinkStore["update"] {
  return async (organizationId, id, changes, actor, version) => {
    await clicks.settled();
    try {
      return await transaction(async (trx) => {
        const link = liveLinks(trx, organizationId).where({ id });
        const before = toLink(await link.clone().forUpdate().first());
        if (!before) return undefined;
        if (version !== undefined && before.version !== version) return "stale";
        const changed = changedFields(before, changes);
        const columns = toColumns(changed);
        if (Object.keys(columns).length === 0) return before;
        const revision = { version: before.version + 1, updatedAt: Date.now() };
        await link.update({ ...columns, version: revision.version, updated_at: revision.updatedAt });
        const after = { ...before, ...changed, ...revision };
        await outbox.record(trx, actor, linkEvent("link.updated", after, Object.keys(columns)));
        return after;
      });
    } catch (error) {
      return toConflict(error);
    }
  };
}

function removeLink({ transaction }: Database, outbox: Outbox, clicks: ClickCounter): LinkStore["remove"] {
  return async (organizationId, id, actor, version) => {
    await clicks.settled();
    return transaction(async (trx) => {
      const link = liveLinks(trx, organizationId).where({ id });
      const before = toLink(await link.clone().forUpdate().first());
      if (!before) return false;
      if (version !== undefined && before.version !== version) return "stale";
      // The row stays to reserve its slug; its content is erased.
      await link.update({
        deleted_at: Date.now(),
        external_id: null,
        title: null,
        tags: "",
        metadata: "{}",
      });
      await outbox.record(trx, actor, linkEvent("link.deleted", before));
      return true;
    });
  };
}

function prepareResolve({ prepare }: Database): LinkStore["resolve"] {
  const findBySlug = prepare<ResolvedRow[], "slug">((q, { slug }) =>
    q("links as l")
      .join("organizations as o", "o.id", "l.organization_id")
      .where("l.slug", unplannedParameter(q, slug))
      .select(RESOLVED_COLUMNS),
  );
  return async (slug) => {
    const [row] = await findBySlug({ slug });
    if (!row) return undefined;
    const { deletedAt, organizationDeletedAt, archived, ...link } = row;
    const isDeleted = deletedAt !== null || organizationDeletedAt !== null;
    return { ...link, archived: Boolean(archived), isDeleted };
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

function linkEvent(type: EventType, link: Link, changed?: string[]): DomainEvent {
  return {
    organizationId: link.organizationId,
    type,
    subject: link.id,
    data: { link, ...(changed && { changed }) },
  };
}

/** Returns the changes whose values differ from those of the link. */
function changedFields(link: Link, changes: LinkChanges): Partial<LinkFields> {
  const differs = ([name, value]: [string, unknown]) => !isDeepStrictEqual(link[name as keyof Link], value);
  return Object.fromEntries(Object.entries(changes).filter(differs));
}

function matchAnyText(clause: Knex.QueryBuilder, pattern: string) {
  for (const column of ["url", "slug", "title"]) {
    clause.orWhereRaw("lower(??) like lower(?) escape '!'", [column, pattern]);
  }
}

/** Returns a LIKE pattern that matches the literal text. `!` is the escape character: no engine gives it a meaning. */
function likePattern(text: string): string {
  return `%${text.replace(/[!%_]/g, "!$&")}%`;
}

function toConflict(error: unknown): LinkConflict {
  if (!isDuplicate(error)) throw error;
  return { taken: violatedConstraint(error).includes("external_id") ? "external_id" : "slug" };
}

type ResolvedRow = Omit<ResolvedLink, "isDeleted"> & {
  deletedAt: number | null;
  organizationDeletedAt: number | null;
};

const RESOLVED_COLUMNS = {
  id: "l.id",
  organizationId: "l.organization_id",
  slug: "l.slug",
  url: "l.url",
  archived: "l.archived",
  expiresAt: "l.expires_at",
  clicks: "l.clicks",
  maxClicks: "l.max_clicks",
  redirectType: "l.redirect_type",
  deletedAt: "l.deleted_at",
  organizationDeletedAt: "o.deleted_at",
};
