import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { EventType } from "../resources/events.ts";
import type { Destination, Link, LinkFields, LinkStore, Taken } from "../resources/ports.ts";
import type { ClickStats } from "./click-stats.ts";
import type { ClickCounter } from "./clicks.ts";
import type { Database } from "./database.ts";
import { holdsText, isDuplicate, violated } from "./engine.ts";
import { newId } from "./id.ts";
import { addDeliveries, EVENT_COLUMNS, eventRow, type Happening, type Journal } from "./journal.ts";
import { ROW_COLUMNS, tagMark, toColumns, toLink, toRow } from "./link-row.ts";
import { unplanned } from "./statement.ts";

/** The links of a database. */
export function createLinkStore(
  database: Database,
  journal: Journal,
  clicks: ClickCounter,
  stats: ClickStats,
): LinkStore {
  const { knex, prepare, inserter, engine, transaction } = database;
  const insert = inserter({
    tables: [
      { name: "links", columns: ROW_COLUMNS },
      { name: "events", columns: EVENT_COLUMNS },
    ],
    follow: (q, ids) => addDeliveries(q, engine, ids),
  });
  const findBySlug = prepare<DestinationRow[]>((q, { slug }) =>
    q("links as l")
      .join("organizations as o", "o.id", "l.organization_id")
      .where("l.slug", unplanned(q, slug))
      .select(DESTINATION_COLUMNS),
  );
  const clickIfOpen = prepare<number>((q, { id, at }) =>
    q("links")
      .where({ id })
      .whereNull("deleted_at")
      .where("clicks", "<", q.ref("max_clicks"))
      .update({ clicks: q.raw("clicks + 1"), last_clicked_at: at }),
  );
  const own = (organizationId: string, q: Knex = knex) =>
    q("links").where({ organization_id: organizationId }).whereNull("deleted_at");
  const one = async (organizationId: string, key: { id: string } | { external_id: string }) => {
    await clicks.settled();
    return toLink(await own(organizationId).where(key).first());
  };
  const happened = (type: EventType, link: Link, changed?: string[]): Happening => ({
    organizationId: link.organizationId,
    type,
    subject: link.id,
    data: { link, ...(changed && { changed }) },
  });

  return {
    async create(organizationId, by, fields, id = newId("lnk")) {
      const now = Date.now();
      const link: Link = {
        ...fields,
        id,
        organizationId,
        clicks: 0,
        lastClickedAt: null,
        version: 1,
        createdBy: by.actor,
        createdAt: now,
        updatedAt: now,
      };
      try {
        await insert(toRow(link), eventRow(by, happened("link.created", link)));
      } catch (error) {
        return taken(error);
      }
      journal.announce();
      return link;
    },

    find: (organizationId, id) => one(organizationId, { id }),

    findByExternalId: (organizationId, externalId) => one(organizationId, { external_id: externalId }),

    async list(organizationId, { search, tag, archived }, limit, before) {
      await clicks.settled();
      const query = own(organizationId).orderBy("id", "desc").limit(limit);
      if (before) query.where("id", "<", before);
      if (archived !== undefined) query.where({ archived });
      if (tag !== undefined) query.whereRaw(holdsText(engine), ["tags", tagMark(tag)]);
      if (search !== undefined) query.where((any) => matches(any, contains(search)));
      return (await query).map((row) => toLink(row) as Link);
    },

    async update(organizationId, id, changes, by, version) {
      await clicks.settled();
      try {
        return await transaction(async (trx) => {
          const link = own(organizationId, trx).where({ id });
          const before = toLink(await link.clone().forUpdate().first());
          if (!before) return undefined;
          if (version !== undefined && before.version !== version) return "stale";
          const columns = toColumns(differing(before, changes));
          if (Object.keys(columns).length === 0) return before;
          const now = { version: before.version + 1, updatedAt: Date.now() };
          await link.update({ ...columns, version: now.version, updated_at: now.updatedAt });
          const after = { ...before, ...changes, ...now };
          await journal.record(trx, by, happened("link.updated", after, Object.keys(columns)));
          return after;
        });
      } catch (error) {
        return taken(error);
      }
    },

    async remove(organizationId, id, by, version) {
      await clicks.settled();
      return transaction(async (trx) => {
        const link = own(organizationId, trx).where({ id });
        const before = toLink(await link.clone().forUpdate().first());
        if (!before) return false;
        if (version !== undefined && before.version !== version) return "stale";
        // The row stays for the sake of its slug; what it was about goes.
        await link.update({
          deleted_at: Date.now(),
          external_id: null,
          title: null,
          tags: "",
          metadata: "{}",
        });
        await journal.record(trx, by, happened("link.deleted", before));
        return true;
      });
    },

    async resolve(slug) {
      const [row] = await findBySlug({ slug });
      if (!row) return undefined;
      const { deletedAt, organizationDeletedAt, archived, ...destination } = row;
      const gone = deletedAt !== null || organizationDeletedAt !== null;
      return { ...destination, archived: Boolean(archived), gone };
    },

    async click(destination, click) {
      const { id, maxClicks } = destination;
      if (maxClicks === null) clicks.count(destination, click);
      else if (await clickIfOpen({ id, at: click.at })) clicks.tell(destination, click);
      else return false;
      stats.add(destination, click);
      return true;
    },

    analytics: stats.read,

    async count(organizationId) {
      const [row] = await own(organizationId).count({ total: "*" });
      return Number(row?.total);
    },
  };
}

/** The changes that give a link something else than it has. */
function differing(link: Link, changes: Partial<LinkFields>): Partial<LinkFields> {
  const differs = ([name, value]: [string, unknown]) => !isDeepStrictEqual(link[name as keyof Link], value);
  return Object.fromEntries(Object.entries(changes).filter(differs));
}

function matches(any: Knex.QueryBuilder, pattern: string) {
  for (const column of ["url", "slug", "title"]) {
    any.orWhereRaw("lower(??) like lower(?) escape '!'", [column, pattern]);
  }
}

/** A LIKE pattern that finds the text itself, whatever it is made of. `!` escapes: no engine gives it a meaning. */
function contains(text: string): string {
  return `%${text.replace(/[!%_]/g, "!$&")}%`;
}

function taken(error: unknown): Taken {
  if (!isDuplicate(error)) throw error;
  return { taken: violated(error).includes("external_id") ? "external_id" : "slug" };
}

type DestinationRow = Omit<Destination, "gone"> & {
  deletedAt: number | null;
  organizationDeletedAt: number | null;
};

const DESTINATION_COLUMNS = {
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
