import type { Knex } from "knex";
import { type Limits, PLANS, type Plan } from "../../resources/plans.ts";
import type { Counter } from "../database/batches.ts";
import type { Row } from "../database/prepared-statements.ts";

/** What an organization or a user may have a limited number of. */
export type Quota = "links" | "link_bytes" | "members" | "organizations";

/** A change was rolled back because it would exceed a quota. */
export class QuotaExceeded extends Error {
  override readonly name = "QuotaExceeded";
  readonly code = "ERR_QUOTA_EXCEEDED";
  readonly quota: Quota;
  readonly limit: number;

  constructor(quota: Quota, limit: number) {
    super(`the quota of ${limit} ${quota} is used up`);
    this.quota = quota;
    this.limit = limit;
  }
}

export type Usage = { links: number; link_bytes: number };

export type LimitsOf = (plan: Plan) => Pick<Limits, "links" | "link_bytes">;

const MOST = 10 ** 15;
const KINDS = ["links", "link_bytes"] as const;

/** No limits, for tests and commands that create no links. */
export const unlimited: LimitsOf = () => ({ links: MOST, link_bytes: MOST });

/** What an organization may still add. Negative after a downgrade. */
export type Room = Usage & { limits: Usage };

export type LinkUsage = ReturnType<typeof createLinkUsage>;

/** Counts the links of organizations and their size. Above the quota of the plan, a count is null, which fails. */
export function createLinkUsage(limitsOf: LimitsOf) {
  const sums = KINDS.map((kind) => `${kind} = ${limited(kind, `:${kind}`)}`).join(", ");
  const countOne = `update organization_usage as u set ${sums} where organization_id = :organization_id`;

  /** Returns the SQL of a count with what is added, which is null if it is above the quota. */
  function limited(kind: keyof Usage, added: string): string {
    const quotas = PLANS.map((plan) => `when '${plan}' then ${limitsOf(plan)[kind]}`).join(" ");
    const quota = `(select case o.plan ${quotas} end from organizations o where o.id = u.organization_id)`;
    return `case when ${added} <= 0 or u.${kind} + ${added} <= ${quota} then u.${kind} + ${added} end`;
  }

  async function readRoom(q: Knex, organizationId: string): Promise<Room> {
    const organization = await q("organizations").where({ id: organizationId }).first("plan");
    const limits = limitsOf(organization?.plan ?? "free");
    const { links, link_bytes } = await readUsage(q, organizationId);
    return { links: limits.links - links, link_bytes: limits.link_bytes - link_bytes, limits };
  }

  return {
    readRoom,

    /** Reads the room and locks the usage until the end of the transaction. */
    async lockRoom(trx: Knex.Transaction, organizationId: string): Promise<Room> {
      await trx("organization_usage").where({ organization_id: organizationId }).forUpdate().first("links");
      return readRoom(trx, organizationId);
    },

    /** Adds to the usage and locks it. Throws an error that `isMissingValue` recognizes, above the quota. */
    async add(trx: Knex.Transaction, organization_id: string, added: Usage): Promise<void> {
      await trx.raw(countOne, { organization_id, ...added });
    },

    /** Returns the quota that a change has exceeded. Meanwhile, there may be room again. */
    async exceeded(q: Knex, organizationId: string, added: Usage): Promise<QuotaExceeded> {
      const room = await readRoom(q, organizationId);
      return exceedsRoom(room, added) ?? new QuotaExceeded("link_bytes", room.limits.link_bytes);
    },

    /** Counts the links of a batch. */
    counter: {
      key: "organization_id",
      one: countOne,
      sum: (rows) => ({
        organization_id: rows[0]?.organization_id as string,
        links: total(rows, "links"),
        link_bytes: total(rows, "link_bytes"),
      }),
      records: (added, condition) => `update organization_usage u
        set ${KINDS.map((kind) => `${kind} = ${limited(kind, `s.${kind}`)}`).join(", ")}
        from json_to_recordset(${added}) as s(organization_id text, links bigint, link_bytes bigint)
        where u.organization_id = s.organization_id and ${condition}`,
    } satisfies Counter,
  };
}

export async function readUsage(q: Knex, organizationId: string): Promise<Usage> {
  const usage = await q("organization_usage")
    .where({ organization_id: organizationId })
    .first("links", "link_bytes");
  return usage ?? { links: 0, link_bytes: 0 };
}

/** Returns the quota that would be exceeded, or undefined if there is room. */
export function exceedsRoom({ limits, ...room }: Room, added: Usage): QuotaExceeded | undefined {
  const kind = KINDS.find((one) => added[one] > 0 && added[one] > room[one]);
  return kind && new QuotaExceeded(kind, limits[kind]);
}

function total(rows: Row[], kind: keyof Usage): number {
  return rows.reduce((sum, row) => sum + (row[kind] as number), 0);
}
