import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { ApiScope } from "../../resources/access/scopes.ts";
import { camelKeys } from "../../resources/http/text.ts";
import { newId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { TrustRuleRow } from "../database/tables/organizations.ts";
import type { DomainEvent, Outbox } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";

export const MAX_TRUST_RULES = 20;

/** Which tokens of another issuer the organization's client may authenticate with, and for which scopes. */
export type NewTrustRule = {
  name: string;
  issuer: string;
  /** The required `sub`; with a `*` at the end, its prefix. */
  subject: string;
  audience: string;
  /** Further claims and the values that they must have. */
  claims: Record<string, string>;
  /** The scopes that the issued tokens may have. */
  scopes: ApiScope[];
};

/** A stored trust rule. Times are epoch milliseconds. */
export type TrustRule = NewTrustRule & {
  id: string;
  /** The username of the user, their id if the account was deleted, or `operator`. */
  createdBy: string;
  createdAt: number;
  lastUsedAt: number | null;
};

export type TrustRuleStore = ReturnType<typeof createTrustRuleStore>;

export function createTrustRuleStore({ knex }: Database, outbox: Outbox) {
  const list = (organizationId: string) => listRules(knex, { "r.organization_id": organizationId });
  return {
    list,

    /** Lists the rules for an issuer, oldest first. Compared here: a database may ignore case or trailing spaces. */
    listByIssuer: async (organizationId: string, issuer: string) =>
      (await list(organizationId)).filter((rule) => rule.issuer === issuer),

    /** Adds a rule. Concurrent calls never exceed the limit. */
    create: (
      organizationId: string,
      rule: NewTrustRule,
      actor: Actor,
    ): Promise<TrustRule | "missing" | "limit"> =>
      outbox.change(actor, async ({ trx, record }) => {
        if (!(await lockOrganization(trx, organizationId))) return "missing";
        const existing = await trx("trust_rules").where({ organization_id: organizationId }).pluck("id");
        if (existing.length >= MAX_TRUST_RULES) return "limit";
        const row: TrustRuleRow = {
          ...rule,
          id: newId("trs"),
          organization_id: organizationId,
          claims: JSON.stringify(rule.claims),
          scopes: rule.scopes.join(" "),
          created_by: actor.id,
          created_at: Date.now(),
          last_used_at: null,
        };
        await trx("trust_rules").insert(row);
        await record(toDomainEvent("trust_rule.created", row));
        const [created] = await listRules(trx, { "r.id": row.id });
        return created as TrustRule;
      }),

    /** Deletes a rule. Returns whether there was one. */
    remove: (organizationId: string, id: string, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async ({ trx, record }) => {
        const rule = trx("trust_rules").where({ id, organization_id: organizationId });
        const row = await rule.clone().forUpdate().first();
        // Of two concurrent calls, one deletes the row and records the event.
        if (!row || !(await rule.delete())) return false;
        await record(toDomainEvent("trust_rule.deleted", row));
        return true;
      }),

    /** Records when rules were used, in epoch milliseconds. */
    async markUsed(ids: string[], at: number): Promise<void> {
      await knex("trust_rules").whereIn("id", ids).update({ last_used_at: at });
    },
  };
}

async function listRules(knex: Knex, filter: Record<string, string>): Promise<TrustRule[]> {
  const rows: (TrustRuleRow & { username: string | null })[] = await knex("trust_rules as r")
    .leftJoin("users as u", "u.id", "r.created_by")
    .where(filter)
    .orderBy("r.id")
    .select("r.*", "u.username");
  return rows.map(({ organization_id: _, username, ...row }) => ({
    ...camelKeys(row),
    claims: JSON.parse(row.claims),
    scopes: row.scopes.split(" ") as ApiScope[],
    createdBy: username ?? row.created_by,
  }));
}

function toDomainEvent(type: "trust_rule.created" | "trust_rule.deleted", row: TrustRuleRow): DomainEvent {
  const { id, organization_id: organizationId, name, issuer, subject, audience, claims, scopes } = row;
  const rule = { name, issuer, subject, audience, claims: JSON.parse(claims), scopes: scopes.split(" ") };
  return { organizationId, type, subject: id, data: { trust_rule_id: id, ...rule } };
}
