import type { Knex } from "knex";
import type { Destination, Link, LinkFields, LinkStore, Taken } from "../resources/ports.ts";
import type { ClickCounter } from "./clicks.ts";
import type { Database } from "./database.ts";
import { holdsText, isDuplicate, violated } from "./engine.ts";
import { newId } from "./id.ts";

/** The links of a database. */
export function createLinkStore(database: Database, clicks: ClickCounter): LinkStore {
  const { knex, prepare, inserter, engine } = database;
  const insert = inserter("links", ROW_COLUMNS);
  const findBySlug = prepare<DestinationRow[]>((q, { slug }) =>
    q("links").where({ slug }).select(DESTINATION_COLUMNS),
  );
  const clickIfOpen = prepare<number>((q, { id, at }) =>
    q("links")
      .where({ id })
      .whereNull("deleted_at")
      .where("clicks", "<", q.ref("max_clicks"))
      .update({ clicks: q.raw("clicks + 1"), last_clicked_at: at }),
  );
  const own = (organizationId: string) =>
    knex("links").where({ organization_id: organizationId }).whereNull("deleted_at");
  const one = async (organizationId: string, id: string) => {
    await clicks.settled();
    return toLink(await own(organizationId).where({ id }).first());
  };

  return {
    async create(organizationId, createdBy, fields) {
      const now = Date.now();
      const link: Link = {
        ...fields,
        id: newId("lnk"),
        organizationId,
        clicks: 0,
        lastClickedAt: null,
        version: 1,
        createdBy,
        createdAt: now,
        updatedAt: now,
      };
      try {
        await insert(toRow(link));
        return link;
      } catch (error) {
        return taken(error);
      }
    },

    find: one,

    async list(organizationId, { search, tag, archived }, limit, before) {
      await clicks.settled();
      const query = own(organizationId).orderBy("id", "desc").limit(limit);
      if (before) query.where("id", "<", before);
      if (archived !== undefined) query.where({ archived });
      if (tag !== undefined) query.whereRaw(holdsText(engine), ["tags", tagMark(tag)]);
      if (search !== undefined) query.where((any) => matches(any, contains(search)));
      return (await query).map((row) => toLink(row) as Link);
    },

    async update(organizationId, id, changes, version) {
      try {
        const changed = await own(organizationId)
          .where({ id, version })
          .update({ ...toColumns(changes), version: version + 1, updated_at: Date.now() });
        const link = await one(organizationId, id);
        return changed || !link ? link : "stale";
      } catch (error) {
        return taken(error);
      }
    },

    async remove(organizationId, id, version) {
      const query = own(organizationId).where({ id });
      if (version !== undefined) query.where({ version });
      // The row stays for the sake of its slug; what it was about goes.
      const removed = await query.update({
        deleted_at: Date.now(),
        external_id: null,
        title: null,
        tags: "",
        metadata: "{}",
      });
      if (removed) return true;
      return (await one(organizationId, id)) ? "stale" : false;
    },

    async resolve(slug) {
      const [row] = await findBySlug({ slug });
      return row && { ...row, archived: Boolean(row.archived), gone: row.deletedAt !== null };
    },

    async click({ id, maxClicks }, at) {
      if (maxClicks !== null) return (await clickIfOpen({ id, at })) > 0;
      clicks.count(id, at);
      return true;
    },

    async count(organizationId) {
      const [row] = await own(organizationId).count({ total: "*" });
      return Number(row?.total);
    },
  };
}

function matches(any: Knex.QueryBuilder, pattern: string) {
  for (const column of ["url", "slug", "title"]) {
    any.orWhereRaw("lower(??) like lower(?) escape '!'", [column, pattern]);
  }
}

// Tags are stored one after the other between these, which no tag contains: each can be looked for as it is.
const MARK = "\u001f";

function tagMark(tag: string): string {
  return MARK + tag + MARK;
}

function writeTags(tags: string[]): string {
  return tags.length ? tagMark(tags.join(MARK)) : "";
}

function readTags(text: string): string[] {
  return text.split(MARK).filter(Boolean);
}

/** A LIKE pattern that finds the text itself, whatever it is made of. `!` escapes: no engine gives it a meaning. */
function contains(text: string): string {
  return `%${text.replace(/[!%_]/g, "!$&")}%`;
}

function taken(error: unknown): Taken {
  if (!isDuplicate(error)) throw error;
  return { taken: violated(error).includes("external_id") ? "external_id" : "slug" };
}

type Value = string | number | boolean | null;
type DestinationRow = Omit<Destination, "gone"> & { deletedAt: number | null };

const DESTINATION_COLUMNS = {
  id: "id",
  url: "url",
  archived: "archived",
  expiresAt: "expires_at",
  clicks: "clicks",
  maxClicks: "max_clicks",
  redirectType: "redirect_type",
  deletedAt: "deleted_at",
};

const COLUMNS: Record<keyof LinkFields, string> = {
  slug: "slug",
  url: "url",
  title: "title",
  tags: "tags",
  externalId: "external_id",
  metadata: "metadata",
  archived: "archived",
  expiresAt: "expires_at",
  maxClicks: "max_clicks",
  redirectType: "redirect_type",
};

const ROW_COLUMNS = [
  ...Object.values(COLUMNS),
  ..."id organization_id clicks last_clicked_at version created_by created_at updated_at".split(" "),
];

function toColumns(fields: Partial<LinkFields>): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [COLUMNS[name as keyof LinkFields], toValue(name, value)]),
  );
}

function toValue(name: string, value: unknown): Value {
  if (name === "tags") return writeTags(value as string[]);
  return name === "metadata" ? JSON.stringify(value) : (value as Value);
}

function toRow(link: Link): Record<string, Value> {
  const { id, organizationId, clicks, lastClickedAt, version, createdBy, createdAt, updatedAt, ...fields } =
    link;
  return {
    ...toColumns(fields),
    id,
    organization_id: organizationId,
    clicks,
    last_clicked_at: lastClickedAt,
    version,
    created_by: createdBy,
    created_at: createdAt,
    updated_at: updatedAt,
  };
}

type LinkRow = {
  id: string;
  organization_id: string;
  slug: string;
  url: string;
  title: string | null;
  tags: string;
  external_id: string | null;
  metadata: string;
  archived: boolean | 0 | 1;
  expires_at: number | null;
  max_clicks: number | null;
  redirect_type: Link["redirectType"];
  clicks: number;
  last_clicked_at: number | null;
  version: number;
  created_by: string;
  created_at: number;
  updated_at: number;
};

function toLink(row: LinkRow | undefined): Link | undefined {
  if (!row) return undefined;
  return {
    id: row.id,
    organizationId: row.organization_id,
    slug: row.slug,
    url: row.url,
    title: row.title,
    tags: readTags(row.tags),
    externalId: row.external_id,
    metadata: JSON.parse(row.metadata),
    archived: Boolean(row.archived),
    expiresAt: row.expires_at,
    maxClicks: row.max_clicks,
    redirectType: row.redirect_type,
    clicks: row.clicks,
    lastClickedAt: row.last_clicked_at,
    version: row.version,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
