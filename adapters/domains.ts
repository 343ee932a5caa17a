import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Caller } from "../resources/access/actor.ts";
import type { Domain, DomainChanges, DomainStore } from "../resources/domains/types.ts";
import type { EventType } from "../resources/events/types.ts";
import { camelKeys, snakeKeys } from "../resources/http/text.ts";
import { limitsOf } from "../resources/plans.ts";
import { type NoticeKind, recordNotice } from "./accounts/notices.ts";
import { newId } from "./crypto/ids.ts";
import { ifDuplicate } from "./database/errors.ts";
import type { Database } from "./database/index.ts";
import type { DomainRow } from "./database/tables/organizations.ts";
import type { Change, Outbox } from "./events/outbox.ts";
import type { CurrentReads } from "./links/redirect-cache.ts";
import { lockOrganization } from "./locks.ts";

const TAKEOVER_MS = 7 * 24 * 60 * 60 * 1000;

/** A domain, with the default of its organization. */
type StoredDomain = DomainRow & { default_domain: string | null };

export function createDomainStore(
  { knex }: Database,
  outbox: Outbox,
  { resolveDomain }: CurrentReads,
): DomainStore {
  /** Runs `work` while the organization and the domain are locked. Resolves to undefined if there is none. */
  function changeDomain<T>(
    { organizationId, actor }: Caller,
    id: string,
    version: number | undefined,
    work: (change: Change, row: StoredDomain) => Promise<T>,
  ): Promise<T | "stale" | undefined> {
    return outbox.change(actor, async (change) => {
      const organization = await lockOrganization(change.trx, organizationId);
      if (!organization) return undefined;
      // Waits for the changes that give a link the domain.
      const row = await domainsOf(change.trx, organizationId).where({ id }).forUpdate().first();
      if (row && version !== undefined && row.version !== version) return "stale";
      return row && work(change, { ...row, default_domain: organization.default_domain });
    });
  }

  return {
    create: ({ organizationId, actor }, { default: isDefault, ...fields }) =>
      outbox
        .change(actor, async ({ trx, record }) => {
          const organization = await lockOrganization(trx, organizationId);
          const limit = organization ? limitsOf(organization.plan).domains : 0;
          if ((await count(trx, organizationId)) >= limit) return { limit };
          const now = Date.now();
          const own = { id: newId("dom"), organization_id: organizationId, created_at: now, updated_at: now };
          const row = { ...toColumns(fields), ...own } as DomainRow;
          await trx("domains").insert(row);
          if (isDefault) await setDefault(trx, row, row.host);
          await record(domainEvent("domain.created", row));
          return (await find(trx, { id: row.id })) as Domain;
        })
        .catch(ifDuplicate({ isDuplicate: true as const })),

    find: (organization_id, id) => find(knex, { organization_id, id }),

    async list(organization_id) {
      return (await stored(knex, { organization_id }).orderBy("host")).map(toDomain);
    },

    count: (organizationId) => count(knex, organizationId),

    update: (caller, id, changes, version) =>
      changeDomain(caller, id, version, async ({ trx, record }, row) => {
        const before = toDomain(row);
        const { default: isDefault, ...changed }: DomainChanges = Object.fromEntries(
          Object.entries(changes).filter(
            ([name, value]) => !isDeepStrictEqual(before[name as keyof Domain], value),
          ),
        );
        const names = Object.keys(toColumns(changed));
        if (isDefault !== undefined) names.push("default");
        if (names.length === 0) return before;
        await trx("domains")
          .where({ id })
          .update({ ...toColumns(changed), ...revisionOf(row) });
        if (isDefault !== undefined) await setDefault(trx, row, isDefault ? row.host : null);
        await record(domainEvent("domain.updated", row, { changed: names }));
        return find(trx, { id });
      }),

    remove: (caller, id, version) =>
      changeDomain(caller, id, version, async ({ trx, record }, row) => {
        const own = { organization_id: row.organization_id, domain: row.host };
        if (await trx("links").where(own).whereNull("deleted_at").first("id")) return "in_use";
        await trx("domains").where({ id }).delete();
        if (row.host === row.default_domain) await setDefault(trx, row, null);
        await record(domainEvent("domain.deleted", row));
        return "removed";
      }),

    recordCheck: (id, tokens, actor) =>
      outbox.change(actor, async ({ trx, record }) => {
        const domain = await trx("domains").where({ id }).first("host");
        if (!domain) return undefined;
        const all = stored(trx, domain).orderBy("organization_id");
        for (const { organization_id } of await all.clone()) await lockOrganization(trx, organization_id);
        const rows = await all;
        const row = rows.find((one) => one.id === id);
        if (!row) return undefined;
        const holder = rows.find(({ live_host }) => live_host !== null);
        const isProved = (one: DomainRow) => tokens.includes(one.token);
        const set = (one: DomainRow, state: Partial<DomainRow>) =>
          trx("domains")
            .where({ id: one.id })
            .update({ ...state, ...revisionOf(one) });
        if (holder && isProved(holder) !== (holder.lost_at === null)) {
          await set(holder, { lost_at: isProved(holder) ? null : Date.now() });
          await record(domainEvent(isProved(holder) ? "domain.verified" : "domain.record_lost", holder));
          if (!isProved(holder)) await notifyManagers(trx, holder, "domain_record_lost");
        }
        if (!isProved(row)) return "missing";
        if (holder === row) return find(trx, { id });
        if (holder) {
          const lostAt = isProved(holder) ? null : holder.lost_at;
          if (lostAt === null || lostAt > Date.now() - TAKEOVER_MS) return "taken";
          await set(holder, { live_host: null, lost_at: null });
          if (holder.host === holder.default_domain) await setDefault(trx, holder, null);
          await record(domainEvent("domain.taken_over", holder));
          await notifyManagers(trx, holder, "domain_taken_over");
        }
        await set(row, { live_host: row.host, lost_at: null, checked_at: Date.now() });
        await record(domainEvent("domain.verified", row));
        return find(trx, { id });
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

function domainsOf(q: Knex, organization_id: string) {
  return q("domains").where({ organization_id });
}

function stored(q: Knex, where: Partial<DomainRow>) {
  const own = q("organizations as o").where("o.id", q.ref("domains.organization_id"));
  return q("domains").where(where).select("*", own.select("default_domain").as("default_domain"));
}

async function find(q: Knex, where: Partial<DomainRow>): Promise<Domain | undefined> {
  return (await stored(q, where)).map(toDomain)[0];
}

async function count(q: Knex, organizationId: string): Promise<number> {
  const [row] = await domainsOf(q, organizationId).count({ total: "*" });
  return Number(row?.total);
}

async function setDefault(trx: Knex.Transaction, { organization_id }: DomainRow, host: string | null) {
  await trx("organizations").where({ id: organization_id }).update({ default_domain: host });
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

// The columns have the names of the properties in snake case.
function toColumns({ appLinks, ...fields }: DomainChanges): Partial<DomainRow> {
  return { ...snakeKeys(fields), ...(appLinks && { app_links: JSON.stringify(appLinks) }) };
}

function toDomain({ default_domain, app_links, case_sensitive, ...row }: StoredDomain): Domain {
  return {
    ...camelKeys(row),
    verified: row.live_host !== null,
    default: row.host === default_domain,
    caseSensitive: Boolean(case_sensitive),
    appLinks: JSON.parse(app_links),
  };
}
