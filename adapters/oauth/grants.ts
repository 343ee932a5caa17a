import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Plan } from "../resources/plans.ts";
import type { Role } from "../resources/scopes.ts";
import type { Database } from "./database.ts";
import type { Happening, Journal } from "./journal.ts";

/** Whether a grant may be used now. `role` is the user's in the organization acted for, absent once the user has left it. */
export type GrantStanding = { organizationId: string; role?: Role; plan: Plan };

/** Leave for an app to act for an organization in a person's name. Times are epoch milliseconds. */
export type AllowedApp = {
  id: string;
  clientId: string;
  /** The one acted for. */
  organizationId: string;
  /** The organization that offers the app; nothing for an app known by its metadata document. */
  appName: string | null;
  userId: string;
  username: string;
  /** The user's current role in that organization. */
  role: Role;
  /** What was granted; of it the app can use what the role allows. */
  scopes: string[];
  grantedAt: number;
  expiresAt: number;
  lastUsedAt: number | null;
};

/** What the service itself asks of grants. */
export type GrantStore = {
  /** The living ones for which apps act for an organization, newest first. */
  ofOrganization(organizationId: string): Promise<AllowedApp[]>;
  /** Those of a person, for whichever organization. */
  ofUser(userId: string): Promise<AllowedApp[]>;
  /** Ends one, with whatever was issued under it. Whether there was one. */
  end(organizationId: string, grantId: string, by: By): Promise<boolean>;
  /** Nothing for a grant that has ended, or one that is bound to no organization. */
  standing(grantId: string): Promise<GrantStanding | undefined>;
};

/** The grants of a database. */
export function createGrantStore({ knex, transaction }: Database, journal: Journal): GrantStore {
  async function list(which: object): Promise<AllowedApp[]> {
    const rows: (Omit<AllowedApp, "scopes"> & { payload: string })[] = await knex("grants as g")
      .join("users as u", "u.id", "g.user_id")
      .join("memberships as m", (join) =>
        join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
      )
      .leftJoin("clients as c", "c.id", "g.client_id")
      .leftJoin("organizations as o", "o.id", "c.organization_id")
      .where(which)
      .whereNull("g.revoked_at")
      .whereNull("u.disabled_at")
      .where("g.expires_at", ">", Date.now())
      .orderBy("g.created_at", "desc")
      .select({
        id: "g.id",
        clientId: "g.client_id",
        organizationId: "g.organization_id",
        appName: "o.name",
        userId: "u.id",
        username: "u.username",
        role: "m.role",
        payload: "g.payload",
        grantedAt: "g.created_at",
        expiresAt: "g.expires_at",
        lastUsedAt: "g.last_used_at",
      });
    return rows.map(({ payload, ...app }) => ({ ...app, scopes: scopesOf(payload) }));
  }

  return {
    ofOrganization: (organizationId) => list({ "g.organization_id": organizationId }),
    ofUser: (userId) => list({ "g.user_id": userId }),

    end: (organizationId, grantId, by) =>
      transaction(
        async (trx) =>
          (await endGrants(trx, journal, by, { id: grantId, organization_id: organizationId })) > 0,
      ),

    async standing(grantId) {
      const row = await knex("grants as g")
        .join("organizations as o", "o.id", "g.organization_id")
        .leftJoin("memberships as m", (join) =>
          join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
        )
        .where("g.id", grantId)
        .whereNull("g.revoked_at")
        .first({ organizationId: "o.id", role: "m.role", plan: "o.plan" });
      const { organizationId, role, plan } = row ?? {};
      return row && { organizationId, plan, ...(role && { role }) };
    },
  };
}

type GrantRow = {
  id: string;
  client_id: string;
  user_id: string;
  organization_id: string | null;
  payload: string;
};

/**
 * Ends every living grant that matches but one, with whatever was issued under it; part of the caller's transaction. Resolves to
 * their number.
 */
export async function endGrants(
  trx: Knex.Transaction,
  journal: Journal,
  by: By,
  which: Partial<GrantRow>,
  exceptId = "",
): Promise<number> {
  const grants: GrantRow[] = await trx("grants")
    .where(which)
    .whereNot("id", exceptId)
    .whereNull("revoked_at")
    .forUpdate(); // of two that end it, one records it
  if (grants.length === 0) return 0;
  const ids = grants.map(({ id }) => id);
  const ended = await trx("grants")
    .whereIn("id", ids)
    .whereNull("revoked_at")
    .update({ revoked_at: Date.now() });
  await journal.record(trx, by, ...grants.flatMap((grant) => toHappening("authorization.revoked", grant)));
  return ended;
}

/** What the journal tells of a grant; nothing of one that is for no organization. */
export function toHappening(
  type: "authorization.granted" | "authorization.revoked",
  { id, client_id, user_id, organization_id, payload }: GrantRow,
): Happening[] {
  if (!organization_id) return [];
  const data = { grant_id: id, client_id, user_id, scopes: scopesOf(payload) };
  return [{ organizationId: organization_id, type, subject: id, data }];
}

/** All that was allowed, of every resource. */
function scopesOf(payload: string): string[] {
  const { openid, resources = {} } = JSON.parse(payload) as {
    openid?: { scope?: string };
    resources?: Record<string, string>;
  };
  const words = [openid?.scope ?? "", ...Object.values(resources)].flatMap((scope) => scope.split(" "));
  return [...new Set(words.filter(Boolean))].sort();
}
