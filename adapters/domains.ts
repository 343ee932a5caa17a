import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Actor } from "../resources/access/actor.ts";
import type { Domain, DomainChanges, DomainStore } from "../resources/domains/types.ts";
import type { EventType } from "../resources/events/types.ts";
import { camelCase } from "../resources/http/text.ts";
import { limitsOf } from "../resources/plans.ts";
import { type NoticeKind, recordNotice } from "./accounts/notices.ts";
import { newId } from "./crypto/ids.ts";
import { ifDuplicate } from "./database/errors.ts";
import type { Database } from "./database/index.ts";
import { type DomainRow, domains } from "./database/tables/organizations.ts";
import type { Change, Outbox } from "./events/outbox.ts";
import type { CurrentReads } from "./links/redirect-cache.ts";
import { lockOrganization } from "./locks.ts";

const TAKEOVER_MS = 7 * 24 * 60 * 60 * 1000;

export function createDomainStore(
  { knex }: Database,
  outbox: Outbox,
  { resolveDomain }: CurrentReads,
): DomainStore {
  /** Runs `work` while the organization and the domain are locked. Resolves to undefined if there is none. */
  function changeDomain<T>(
    organizationId: string,
    id: string,
    actor: Actor,
    work: (change: Change, before: DomainRow, defaultHost: string | null) => Promise<T>,
  ): Promise<T | undefined> {
    return outbox.change(actor, async (change) => {
      const organization = await lockOrganization(change.trx, organizationId);
      if (!organization) return undefined;
      // Waits for the changes that give a link the domain.
      const row = await domainsOf(change.trx, organizationId).where({ id }).forUpdate().first();
      return row && work(change, row, organization.default_domain);
    });
  }

  return {
    create: (organizationId, actor, { default: isDefault, token, ...fields }) =>
      outbox
        .change(actor, async ({ trx, record }) => {
          const organization = await lockOrganization(trx, organizationId);
          const limit = organization ? limitsOf(organization.plan).domains : 0;
          if ((await count(trx, organizationId)) >= limit) return { limit };
          const now = Date.now();
          const row = {
            ...toColumns(fields),
            id: newId("dom"),
            organization_id: organizationId,
            live_host: null,
            token,
            lost_at: null,
            checked_at: null,
            version: 1,
            created_at: now,
            updated_at: now,
          } as DomainRow;
          await trx("domains").insert(row);
          if (isDefault) await setDefault(trx, row, row.host);
          await record(domainEvent("domain.created", row));
          return toDomain(row, isDefault ? row.host : null);
        })
        .catch(ifDuplicate({ isDuplicate: true as const })),

    async find(organizationId, id) {
      const row = await domainsOf(knex, organizationId).where({ id }).first();
      return row && toDomain(row, await findDefault(knex, organizationId));
    },

    async list(organizationId) {
      const rows = await domainsOf(knex, organizationId).orderBy("host");
      const defaultHost = await findDefault(knex, organizationId);
      return rows.map((row) => toDomain(row, defaultHost));
    },

    count: (organizationId) => count(knex, organizationId),

    update: (organizationId, id, changes, actor, version) =>
      changeDomain(organizationId, id, actor, async ({ trx, record }, before, defaultHost) => {
        if (version !== undefined && before.version !== version) return "stale";
        const domain = toDomain(before, defaultHost);
        const changed = Object.entries(changes).filter(
          ([name, value]) => !isDeepStrictEqual(domain[name as keyof Domain], value),
        );
        if (changed.length === 0) return domain;
        const { default: isDefault, ...fields }: DomainChanges = Object.fromEntries(changed);
        const columns = toColumns(fields);
        const after = { ...before, ...columns, ...revisionOf(before) };
        await trx("domains").where({ id }).update(after);
        if (isDefault !== undefined) await setDefault(trx, before, isDefault ? before.host : null);
        const names = [...Object.keys(columns), ...(isDefault === undefined ? [] : ["default"])];
        await record(domainEvent("domain.updated", after, { changed: names }));
        return { ...toDomain(after, null), default: changes.default ?? domain.default };
      }),

    async remove(organizationId, id, actor, version) {
      const removed = await changeDomain(
        organizationId,
        id,
        actor,
        async ({ trx, record }, row, defaultHost) => {
          if (version !== undefined && row.version !== version) return "stale";
          const own = { organization_id: organizationId, domain: row.host };
          if (await trx("links").where(own).whereNull("deleted_at").first("id")) return "in_use";
          await trx("domains").where({ id }).delete();
          if (row.host === defaultHost) await setDefault(trx, row, null);
          await record(domainEvent("domain.deleted", row));
          return true;
        },
      );
      return removed ?? false;
    },

    recordCheck: (id, tokens, actor) =>
      outbox.change(actor, async (change) => {
        const { trx, record } = change;
        const domain = await trx("domains").where({ id }).first();
        if (!domain || !(await lockOwners(trx, domain.host))) return undefined;
        const row = await trx("domains").where({ id }).first();
        if (!row) return undefined;
        const { host } = row;
        const holder = await trx("domains").where({ live_host: host }).first();
        if (holder) await recordPresence(change, holder, tokens.includes(holder.token));
        if (!tokens.includes(row.token)) return "missing";
        const defaultHost = await findDefault(trx, row.organization_id);
        if (holder?.id === id)
          return toDomain((await trx("domains").where({ id }).first()) as DomainRow, defaultHost);
        if (holder) {
          const lostAt = tokens.includes(holder.token) ? null : (holder.lost_at ?? Date.now());
          if (lostAt === null || lostAt > Date.now() - TAKEOVER_MS) return "taken";
          await trx("domains")
            .where({ id: holder.id })
            .update({ live_host: null, lost_at: null, ...revisionOf(holder) });
          if (host === (await findDefault(trx, holder.organization_id))) await setDefault(trx, holder, null);
          await record(domainEvent("domain.taken_over", holder));
          await notifyManagers(trx, holder, "domain_taken_over");
        }
        const state = { live_host: host, lost_at: null, checked_at: Date.now(), ...revisionOf(row) };
        await trx("domains").where({ id }).update(state);
        await record(domainEvent("domain.verified", row));
        return toDomain({ ...row, ...state }, defaultHost);
      }),

    async takeUnchecked(since, count) {
      const due = await knex("domains")
        .whereNotNull("live_host")
        .where((domain) => domain.whereNull("checked_at").orWhere("checked_at", "<", since))
        .limit(count)
        .select("id", "host", "checked_at");
      const taken = [];
      for (const { id, host, checked_at } of due)
        if (await knex("domains").where({ id, checked_at }).update({ checked_at: Date.now() }))
          taken.push({ id, host });
      return taken;
    },

    resolve: resolveDomain,

    async findAppLinks(id) {
      const row = await knex("domains").where({ id }).first("app_links");
      return row && JSON.parse(row.app_links);
    },
  };
}

function domainsOf(q: Knex, organizationId: string) {
  return q("domains").where({ organization_id: organizationId });
}

async function count(q: Knex, organizationId: string): Promise<number> {
  const [row] = await domainsOf(q, organizationId).count({ total: "*" });
  return Number(row?.total);
}

async function findDefault(q: Knex, id: string): Promise<string | null> {
  const row = await q("organizations").where({ id }).first("default_domain");
  return row?.default_domain ?? null;
}

async function setDefault(trx: Knex.Transaction, { organization_id }: DomainRow, host: string | null) {
  await trx("organizations").where({ id: organization_id }).update({ default_domain: host });
}

/** Locks the organizations that have added a host, in the order of their ids. Resolves to whether there are any. */
async function lockOwners(trx: Knex.Transaction, host: string): Promise<boolean> {
  const ids = await trx("domains").where({ host }).orderBy("organization_id").pluck("organization_id");
  for (const id of ids) await lockOrganization(trx, id);
  return ids.length > 0;
}

/** Marks a verified domain whose record is gone, or is there again. */
async function recordPresence({ trx, record }: Change, row: DomainRow, isPresent: boolean): Promise<void> {
  if (isPresent === (row.lost_at === null)) return;
  const lost_at = isPresent ? null : Date.now();
  await trx("domains")
    .where({ id: row.id })
    .update({ lost_at, ...revisionOf(row) });
  await record(domainEvent(isPresent ? "domain.verified" : "domain.record_lost", row));
  if (!isPresent) await notifyManagers(trx, row, "domain_record_lost");
}

async function notifyManagers(trx: Knex.Transaction, { organization_id, host }: DomainRow, kind: NoticeKind) {
  const managers: string[] = await trx("memberships")
    .where({ organization_id })
    .whereIn("role", ["owner", "admin"])
    .orderBy("user_id")
    .pluck("user_id");
  for (const userId of managers) await recordNotice(trx, { userId, kind, data: { name: host } });
}

function domainEvent(type: EventType, { id, organization_id, host }: DomainRow, more: object = {}) {
  return { organizationId: organization_id, type, subject: id, data: { domain_id: id, host, ...more } };
}

function revisionOf({ version }: DomainRow) {
  return { version: version + 1, updated_at: Date.now() };
}

// The properties have the names of the columns in camel case.
const COLUMN_OF = new Map(
  Object.keys(domains.columns).map((column) => [camelCase(column), column as keyof DomainRow]),
);

function toColumns({ appLinks, ...fields }: DomainChanges): Partial<DomainRow> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const columns = given.map(([name, value]) => [COLUMN_OF.get(name), value]);
  return { ...Object.fromEntries(columns), ...(appLinks && { app_links: JSON.stringify(appLinks) }) };
}

function toDomain(row: DomainRow, defaultHost: string | null): Domain {
  const properties = [...COLUMN_OF].map(([name, column]) => [name, row[column]]);
  return {
    ...Object.fromEntries(properties),
    verified: row.live_host !== null,
    default: row.host === defaultHost,
    caseSensitive: Boolean(row.case_sensitive),
    appLinks: JSON.parse(row.app_links),
  };
}
