import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { EventType } from "../../resources/events/types.ts";
import { addressOf, type LinkDomain } from "../../resources/links/rules.ts";
import type {
  Link,
  LinkChanges,
  LinkConflict,
  LinkFields,
  LinkStore,
  ListPart,
} from "../../resources/links/types.ts";
import { newId } from "../crypto/ids.ts";
import { isDuplicate, isMissingValue, violatedConstraint } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { LinkRow } from "../database/tables/links.ts";
import { type DomainEvent, deliveriesOf, EVENT_COLUMNS, eventRow, type Outbox } from "../events/outbox.ts";
import { createClickAnalytics } from "./click-analytics.ts";
import type { ClickBuffer } from "./click-buffer.ts";
import { DETAIL_DAYS } from "./click-details.ts";
import type { ClickDetailDays } from "./fold-clicks.ts";
import { createLinkImports } from "./import.ts";
import { type CurrentReads, findOwner } from "./redirect-cache.ts";
import {
  ERASED,
  newLink,
  ROW_COLUMNS,
  readTags,
  searchedText,
  storedBytes,
  toColumns,
  toLink,
  toRow,
  withoutHash,
} from "./row.ts";
import { createSearch, listLinkDomains, SearchTimeout } from "./search.ts";
import { createLinkUsage, type LimitsOf, type LinkUsage, readUsage } from "./usage.ts";

// A change can exceed only this quota.
const GROWN = { links: 0, link_bytes: 1 };
// The tags of a thousand links take milliseconds.
const TAGS_MS = 1000;

type LinkStoreOptions = {
  clicks: ClickBuffer;
  limitsOf: LimitsOf;
  clickDetailDays: ClickDetailDays | undefined;
  currentReads: CurrentReads;
};

export function createLinkStore(
  database: Database,
  outbox: Outbox,
  { clicks, limitsOf, clickDetailDays, currentReads }: LinkStoreOptions,
): LinkStore {
  const { knex } = database;
  const search = createSearch(database);
  const usage = createLinkUsage(limitsOf);
  const analytics = createClickAnalytics(database, clicks.settledStatistics);

  async function findBy(organizationId: string, key: { id: string } | { external_id: string }) {
    await clicks.settled();
    return toLink(await liveLinks(knex, organizationId).where(key).first());
  }

  const list: LinkStore["list"] = async (organizationId, filter, limit, part = {}) => {
    await clicks.settled();
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    const isSearch = isFiltered || (part.sort ?? "created_at") !== "created_at";
    const rows = await (isSearch
      ? withTimeout(search.findRows(organizationId, filter, limit, part))
      : readPart(organizationId, limit, part));
    return rows === "timeout" ? rows : rows.map((row) => toLink(row) as Link);
  };

  function readPart(organizationId: string, limit: number, { from, isAscending }: ListPart) {
    const links = liveLinks(knex, organizationId)
      .orderBy("id", isAscending ? "asc" : "desc")
      .limit(limit);
    if (from) links.where("id", isAscending ? ">=" : "<", from.id);
    return links;
  }

  const update: LinkStore["update"] = async (organizationId, id, changes, actor, version) => {
    await clicks.settled();
    try {
      return await outbox.change(actor, async ({ trx, record }) => {
        const link = liveLinks(trx, organizationId).where({ id });
        const before = toLink(await link.clone().forUpdate().first());
        if (!before) return undefined;
        if (before.disabledAt !== null) return "disabled";
        if (version !== undefined && before.version !== version) return "stale";
        const changed = changedFields(before, typeof changes === "function" ? changes(before) : changes);
        const columns = toColumns(changed);
        if (Object.keys(columns).length === 0) return before;
        const visible = withoutHash(changed);
        const after = { ...before, ...visible, version: before.version + 1, updatedAt: Date.now() };
        const names = Object.keys(columns).map((name) => (name === "password_hash" ? "password" : name));
        const revision = { version: after.version, updated_at: after.updatedAt };
        if ("slug" in columns || "domain" in columns) {
          const domain = await findDomainOf(trx, after, true);
          if (domain === undefined) return { missing: "domain" };
          columns.address = addressOf(after.slug, domain);
        }
        await link.update({ ...columns, ...revision, searched: searchedText(after) });
        await record(linkUpdated(after, visible, names));
        const link_bytes = storedBytes(toRow(after)) - storedBytes(toRow(before));
        if (link_bytes !== 0) await usage.add(trx, organizationId, { links: 0, link_bytes });
        return after;
      });
    } catch (error) {
      if (isMissingValue(error)) throw await usage.exceeded(knex, organizationId, GROWN);
      return toConflict(error);
    }
  };

  const remove: LinkStore["remove"] = async (organizationId, id, actor, version) => {
    await clicks.settled();
    return outbox.change(actor, async ({ trx, record }) => {
      const link = liveLinks(trx, organizationId).where({ id });
      const before = toLink(await link.clone().forUpdate().first());
      if (!before) return false;
      if (version !== undefined && before.version !== version) return "stale";
      await link.update({ ...ERASED, deleted_at: Date.now() });
      await usage.add(trx, organizationId, { links: -1, link_bytes: -storedBytes(toRow(before)) });
      await record(linkDeleted(before));
      return true;
    });
  };

  const topLinks: LinkStore["topLinks"] = async (organizationId, from, to, count, filter) => {
    // Some may have been deleted.
    const top = await analytics.topLinks(organizationId, from, to, 2 * count, filter);
    const ids = top.map(({ id }) => id);
    const rows = await liveLinks(knex, organizationId).whereIn("id", ids);
    const links = new Map(rows.map((row) => [row.id, toLink(row) as Link]));
    return top
      .flatMap(({ id, clicks }) => {
        const link = links.get(id);
        return link ? [{ link, clicks }] : [];
      })
      .slice(0, count);
  };

  const insert = prepareCreate(database, outbox, usage);

  return {
    async create(organizationId, actor, ...link) {
      const created = await insert(organizationId, actor, ...link);
      // A deletion of its domain that began before can't have seen the link.
      if ("id" in created && (await findDomainOf(knex, created, true)) === undefined) {
        await remove(organizationId, created.id, actor);
        return { missing: "domain" };
      }
      return created;
    },
    beginImport: createLinkImports(database, outbox, usage),
    find: (organizationId, id) => findBy(organizationId, { id }),
    findByExternalId: (organizationId, externalId) => findBy(organizationId, { external_id: externalId }),
    async findMany(organizationId, ids) {
      await clicks.settled();
      const rows = await liveLinks(knex, organizationId).whereIn("id", ids).orderBy("id", "desc");
      return rows.map((row) => toLink(row) as Link);
    },
    list,
    listIds: (...query) => withTimeout(search.findIds(...query)),
    update,
    remove,
    resolve: currentReads.resolveLink,
    async listHosts(organizationId) {
      return [...(await listLinkDomains(knex, organizationId, { isVerified: false })).keys()];
    },
    async findDefaultDomain(id) {
      const row = await knex("organizations").where({ id }).first("default_domain");
      return row?.default_domain ?? null;
    },
    findOwner: (id) => findOwner(knex, id),
    async findPasswordHash(id) {
      const row = await knex("links").where({ id }).first("password_hash");
      return row?.password_hash ?? null;
    },
    click: clicks.count,
    analytics: analytics.read,
    countClicks: analytics.count,
    async countedDays(id) {
      const row = await knex("organizations").where({ id }).first("plan", "time_zone");
      const filteredDays = Math.min(DETAIL_DAYS, clickDetailDays?.[row?.plan ?? "free"] ?? DETAIL_DAYS);
      return { filteredDays, timeZone: row?.time_zone ?? "UTC" };
    },
    async newestTags(organizationId, count) {
      const newest = liveLinks(knex, organizationId).orderBy("id", "desc").limit(count).select("tags");
      const rows = await database.readAside<Pick<LinkRow, "tags">>(newest, TAGS_MS);
      return rows.map(({ tags }) => readTags(tags));
    },
    topLinks,
    usage: (organizationId) => readUsage(knex, organizationId),
  };
}

async function withTimeout<Found>(search: Promise<Found>): Promise<Found | "timeout"> {
  try {
    return await search;
  } catch (error) {
    if (error instanceof SearchTimeout) return "timeout";
    throw error;
  }
}

function liveLinks(q: Knex, organizationId: string) {
  return q("links").where({ organization_id: organizationId }).whereNull("deleted_at");
}

function changedFields(link: Link, changes: LinkChanges): Partial<LinkFields> {
  const differs = ([name, value]: [string, unknown]) =>
    name === "passwordHash"
      ? value !== null || link.hasPassword // equal passwords have different hashes
      : !isDeepStrictEqual(link[name as keyof Link], value);
  return Object.fromEntries(Object.entries(changes).filter(differs));
}

function prepareCreate(
  { engine, inserter, knex }: Database,
  outbox: Outbox,
  usage: LinkUsage,
): LinkStore["create"] {
  const insert = inserter({
    tables: [
      { name: "links", columns: ROW_COLUMNS },
      { name: "events", columns: [...EVENT_COLUMNS, ...outbox.trace.columns] },
    ],
    uniqueColumn: "address",
    counter: usage.counter,
    follow: (rows) => deliveriesOf(engine, rows),
  });

  return async (organizationId, actor, fields, givenId) => {
    const link = newLink(organizationId, actor, givenId ?? newId("lnk"), fields);
    const domain = await findDomainOf(knex, link);
    if (domain === undefined) return { missing: "domain" };
    const row = { ...toRow(link, domain), password_hash: fields.passwordHash };
    const event = eventRow(actor, eventOf("link.created", link, { link }), outbox.trace.of("link.created"));
    const added = { links: 1, link_bytes: storedBytes(row) };
    try {
      await insert(row, event, { organization_id: organizationId, ...added });
    } catch (error) {
      if (isMissingValue(error)) throw await usage.exceeded(knex, organizationId, added);
      return toConflict(error);
    }
    outbox.notify();
    return link;
  };
}

/** Resolves to null for a link on the server's own host, and to undefined if the organization has no such domain. */
async function findDomainOf(
  q: Knex,
  { domain, organizationId }: Link,
  isLocked = false,
): Promise<LinkDomain | null | undefined> {
  return domain === null ? null : (await listLinkDomains(q, organizationId, { isLocked })).get(domain);
}

function toConflict(error: unknown): LinkConflict {
  if (!isDuplicate(error)) throw error;
  return { taken: violatedConstraint(error).includes("external_id") ? "external_id" : "slug" };
}

// The audit log is kept for years, and a client can update a link without end.
const MAX_METADATA_BYTES = 2000;

function linkUpdated(link: Link, fields: Partial<Link>, changed: string[]): DomainEvent {
  const { id, domain, slug, updatedAt } = link;
  const data = { link: { id, domain, slug, updatedAt, ...withoutLargeMetadata(fields) }, changed };
  return { ...eventOf("link.updated", link, data), delivered: { link, changed } };
}

function linkDeleted(link: Link): DomainEvent {
  const audited = withoutLargeMetadata(link);
  const event = eventOf("link.deleted", link, { link: audited });
  return audited === link ? event : { ...event, delivered: { link } };
}

function eventOf(type: EventType, { id, organizationId }: Link, data: object): DomainEvent {
  return { organizationId, type, subject: id, data };
}

function withoutLargeMetadata<T extends { metadata?: Link["metadata"] | undefined }>(
  fields: T,
): T | Omit<T, "metadata"> {
  const { metadata, ...rest } = fields;
  const isLarge = Buffer.byteLength(JSON.stringify(metadata ?? {})) > MAX_METADATA_BYTES;
  return isLarge ? rest : fields;
}
