import type { Knex } from "knex";
import type { Link, LinkFields, LinkStore, Taken } from "../resources/ports.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { newId } from "./id.ts";

/** The links of a database. */
export function createLinkStore({ knex }: Database): LinkStore {
  const own = (organizationId: string) =>
    knex("links").where({ organization_id: organizationId }).whereNull("deleted_at");
  const one = async (organizationId: string, id: string) =>
    toLink(await own(organizationId).where({ id }).first());

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
        await knex("links").insert(toRow(link));
        return link;
      } catch (error) {
        return taken(error);
      }
    },

    find: one,

    async list(organizationId, { search, tag, archived }, limit, before) {
      const query = own(organizationId).orderBy("id", "desc").limit(limit);
      if (before) query.where("id", "<", before);
      if (archived !== undefined) query.where({ archived });
      if (tag !== undefined) query.where("tags", "like", contains(JSON.stringify(tag)));
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
        tags: "[]",
        metadata: "{}",
      });
      if (removed) return true;
      return (await one(organizationId, id)) ? "stale" : false;
    },

    async resolve(slug) {
      const row = await knex("links").where({ slug }).first();
      if (!row) return undefined;
      return { ...(toLink(row) as Link), gone: row.deleted_at !== null };
    },

    async click(id, at) {
      const counted = await knex("links")
        .where({ id })
        .whereNull("deleted_at")
        .where((open) => open.whereNull("max_clicks").orWhere("clicks", "<", knex.ref("max_clicks")))
        .update({ clicks: knex.raw("clicks + 1"), last_clicked_at: at });
      return counted > 0;
    },

    async count(organizationId) {
      const [row] = await own(organizationId).count({ total: "*" });
      return Number(row?.total);
    },
  };
}

function matches(any: Knex.QueryBuilder, pattern: string) {
  for (const column of ["url", "slug", "title"]) any.orWhere(column, "like", pattern);
}

/** A LIKE pattern that finds the text itself, whatever it is made of. */
function contains(text: string): string {
  return `%${text.replace(/[\\%_]/g, "\\$&")}%`;
}

function taken(error: unknown): Taken {
  if (!isDuplicate(error)) throw error;
  return { taken: String((error as Error).message).includes("external_id") ? "external_id" : "slug" };
}

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

function toColumns(fields: Partial<LinkFields>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      COLUMNS[name as keyof LinkFields],
      name === "tags" || name === "metadata" ? JSON.stringify(value) : value,
    ]),
  );
}

function toRow(link: Link): Record<string, unknown> {
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

// biome-ignore lint/suspicious/noExplicitAny: a row is whatever the database has; this is the one place that reads it
function toLink(row: any): Link | undefined {
  if (!row) return undefined;
  return {
    id: row.id,
    organizationId: row.organization_id,
    slug: row.slug,
    url: row.url,
    title: row.title,
    tags: JSON.parse(row.tags),
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
