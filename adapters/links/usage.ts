import type { Knex } from "knex";
import type { Limits, Plan } from "../../resources/plans.ts";
import type { Insertion } from "../database/insertion.ts";
import type { BeginGroupState, Row } from "../database/sqlite/group-state.ts";
import type { OrganizationUsageRow } from "../database/usage-tables.ts";
import { QuotaExceeded } from "../quota-exceeded.ts";

/** What an organization uses, or a change adds to it. */
export type Usage = { links: number; link_bytes: number };

/** Returns the limits of a plan. */
export type LimitsOf = (plan: Plan) => Pick<Limits, "links" | "link_bytes">;

const MOST = 10 ** 15;
const NOTHING: Usage = { links: 0, link_bytes: 0 };
/** No limits, for tests and commands that create no links. */
export const unlimited: LimitsOf = () => ({ links: MOST, link_bytes: MOST });

// Batches of one organization that can be committed at the same time.
const SLOTS = 8;
// If a slot's share would be smaller, the whole rest of the quota belongs to one slot.
const MIN_SHARE: Usage = { links: 20, link_bytes: 200_000 };

/** Adds the usage of a new organization. Part of the caller's transaction. */
export async function insertUsage(trx: Knex.Transaction, organizationId: string): Promise<void> {
  const none = { links: 0, link_bytes: 0, max_links: 0, max_link_bytes: 0 };
  const slots = Array.from({ length: SLOTS }, (_, slot) => ({
    organization_id: organizationId,
    slot,
    ...none,
  }));
  await trx("organization_usage").insert(slots);
}

/** Takes the shares of the quota from all slots, so the next change looks at the current plan. */
export async function withdrawShares(trx: Knex.Transaction, organizationId: string): Promise<void> {
  const used = { max_links: trx.ref("links"), max_link_bytes: trx.ref("link_bytes") };
  await trx("organization_usage").where({ organization_id: organizationId }).update(used);
}

export async function readUsage(q: Knex, organizationId: string): Promise<Usage> {
  const [row] = await q("organization_usage")
    .where({ organization_id: organizationId })
    .sum({ links: "links", link_bytes: "link_bytes" });
  return { links: Number(row?.links ?? 0), link_bytes: Number(row?.link_bytes ?? 0) };
}

/** Adds to the usage of an organization in one slot. Violates a check constraint if the slot's share is used up. */
export async function addUsage(
  q: Knex,
  organizationId: string,
  added: Usage,
  slot = randomSlot(),
): Promise<void> {
  await q("organization_usage")
    .where({ organization_id: organizationId, slot })
    .update({
      links: q.raw("links + ?", [added.links]),
      link_bytes: q.raw("link_bytes + ?", [added.link_bytes]),
    });
}

/** Counts the links of a batch in its transaction. */
export function usageCounter(): NonNullable<Insertion["counter"]> {
  return {
    state: countInGroup,
    one: (q, { organization_id, links, link_bytes }) =>
      q("organization_usage")
        .where({ organization_id: organization_id as Knex.Raw, slot: 0 })
        .update({
          links: q.raw("links + ?", [links as Knex.Raw]),
          link_bytes: q.raw("link_bytes + ?", [link_bytes as Knex.Raw]),
        }),
    records: (rows, batch, condition) => `update organization_usage u
      set links = u.links + s.links, link_bytes = u.link_bytes + s.link_bytes
      from (select organization_id, sum(links) links, sum(link_bytes) link_bytes
        from json_to_recordset(${rows}) as r(organization_id text, links bigint, link_bytes bigint)
        ${condition} group by organization_id) s
      where u.organization_id = s.organization_id and u.slot = cast(${batch} as bigint) % ${SLOTS}`,
    many(q, rows, batch) {
      const sums = [...sumByOrganization(rows)];
      const add = (column: string) =>
        `${column} = ${column} + case organization_id ${sums.map(() => "when ? then ?").join(" ")} end`;
      return q.raw(
        `update organization_usage set ${add("links")}, ${add("link_bytes")}
        where slot = ? and organization_id in (${sums.map(() => "?").join(", ")})`,
        [
          ...sums.flatMap(([id, { links }]) => [id, links]),
          ...sums.flatMap(([id, { link_bytes }]) => [id, link_bytes]),
          batch % SLOTS,
          ...sums.map(([id]) => id),
        ],
      );
    },
  };
}

const READ_SLOT = `select links, link_bytes, max_links, max_link_bytes from organization_usage
  where organization_id = ? and slot = 0`;
const COUNT = `update organization_usage set links = links + ?, link_bytes = link_bytes + ?
  where organization_id = ? and slot = 0`;

/** Counts the links of a group of writes in one statement per organization. SQLite has one writer, so one slot is enough. */
const countInGroup: BeginGroupState = (read) => {
  const slots = new Map<string, { left: Usage; added: Usage }>();

  function readSlot(organizationId: string) {
    const [slot] = read(READ_SLOT, [organizationId]) as OrganizationUsageRow[];
    const left = slot && {
      links: slot.max_links - slot.links,
      link_bytes: slot.max_link_bytes - slot.link_bytes,
    };
    return { left: left ?? { links: MOST, link_bytes: MOST }, added: NOTHING };
  }

  return {
    add(row) {
      const { organization_id, links, link_bytes } = row as { organization_id: string } & Usage;
      const slot = slots.get(organization_id) ?? readSlot(organization_id);
      const added = { links: slot.added.links + links, link_bytes: slot.added.link_bytes + link_bytes };
      const undo = () => void slots.set(organization_id, slot);
      // The quota is used up. If this row is stored with the write, the check constraint rejects only this write.
      if (added.links > slot.left.links || added.link_bytes > slot.left.link_bytes) {
        return { row: { organization_id, ...added }, undo };
      }
      slots.set(organization_id, { ...slot, added });
      return { row: undefined, undo };
    },

    end: () =>
      [...slots]
        .filter(([, { added }]) => added.links > 0)
        .map(([id, { added }]) => ({ sql: COUNT, bindings: [added.links, added.link_bytes, id] })),
  };
};

function sumByOrganization(rows: Row[]): Map<string, Usage> {
  const sums = new Map<string, Usage>();
  for (const { organization_id, links, link_bytes } of rows) {
    const sum = sums.get(organization_id as string) ?? { links: 0, link_bytes: 0 };
    sums.set(organization_id as string, {
      links: sum.links + (links as number),
      link_bytes: sum.link_bytes + (link_bytes as number),
    });
  }
  return sums;
}

/**
 * Checks that there is room for a change, and shares the rest of the quota between the slots, so that the first one has
 * room for it. Locks the organization's usage until the transaction ends. Resolves to whether little room is left.
 * @throws QuotaExceeded
 */
export async function reserve(
  trx: Knex.Transaction,
  organizationId: string,
  added: Usage,
  limitsOf: LimitsOf,
): Promise<boolean> {
  const organization = await trx("organizations").where({ id: organizationId }).forUpdate().first("plan");
  const slots = await trx("organization_usage")
    .where({ organization_id: organizationId })
    .orderBy("slot")
    .forUpdate();
  if (!organization) return false;
  const limits = limitsOf(organization.plan);
  const left = { links: 0, link_bytes: 0 };
  for (const kind of ["links", "link_bytes"] as const) {
    const used = slots.reduce((sum, slot) => sum + slot[kind], 0);
    left[kind] = Math.max(0, limits[kind] - used);
    if (added[kind] > 0 && added[kind] > left[kind]) throw new QuotaExceeded(kind, limits[kind]);
  }
  const shares = { links: Math.floor(left.links / SLOTS), link_bytes: Math.floor(left.link_bytes / SLOTS) };
  const isRoomy = shares.links >= MIN_SHARE.links && shares.link_bytes >= MIN_SHARE.link_bytes;
  // Shrink the others before the first one grows: the sum never exceeds the quota.
  for (const { slot, links, link_bytes, ...before } of slots.toReversed()) {
    const share = isRoomy ? shares : slot === 0 ? left : { links: 0, link_bytes: 0 };
    const after = maxima({ links, link_bytes }, share);
    if (after.max_links === before.max_links && after.max_link_bytes === before.max_link_bytes) continue;
    await trx("organization_usage").where({ organization_id: organizationId, slot }).update(after);
  }
  return !isRoomy;
}

function maxima(used: Usage, share: Usage): Pick<OrganizationUsageRow, "max_links" | "max_link_bytes"> {
  return { max_links: used.links + share.links, max_link_bytes: used.link_bytes + share.link_bytes };
}

function randomSlot(): number {
  return Math.floor(Math.random() * SLOTS);
}
