import type { Knex } from "knex";
import type { Plan } from "../resources/plans.ts";
import type { ActiveToken } from "../resources/ports.ts";
import type { Role } from "../resources/scopes.ts";
import { unplanned } from "./statement.ts";

/**
 * A token with all that its life depends on, in one statement: its client with that client's organization, its grant,
 * the person who allowed it, and the organization acted for.
 */
export function selectToken(knex: Knex, hash: unknown): Knex.QueryBuilder {
  return knex("tokens as t")
    .leftJoin("clients as c", "c.id", "t.client_id")
    .leftJoin("organizations as co", "co.id", "c.organization_id")
    .leftJoin("grants as g", "g.id", "t.grant_id")
    .leftJoin("organizations as go", "go.id", "g.organization_id")
    .leftJoin("users as u", "u.id", "g.user_id")
    .leftJoin("memberships as m", (join) =>
      join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
    )
    .where("t.id_hash", unplanned(knex, hash))
    .select({
      payload: "t.payload",
      kind: "t.kind",
      expiresAt: "t.expires_at",
      consumedAt: "t.consumed_at",
      generation: "t.generation",
      clientId: "t.client_id",
      clientGeneration: "c.generation",
      clientOrganizationId: "co.id",
      clientPlan: "co.plan",
      grantId: "g.id",
      userId: "g.user_id",
      lastUsedAt: "g.last_used_at",
      revokedAt: "g.revoked_at",
      grantExpiresAt: "g.expires_at",
      disabledAt: "u.disabled_at",
      role: "m.role",
      organizationId: "go.id",
      plan: "go.plan",
    });
}

/** What `selectToken` finds. */
export type TokenRow = {
  payload: string;
  kind: string;
  expiresAt: number;
  consumedAt: number | null;
  generation: number | null;
  clientId: string;
  clientGeneration: number | null;
  clientOrganizationId: string | null;
  clientPlan: Plan | null;
  grantId: string | null;
  userId: string | null;
  lastUsedAt: number | null;
  revokedAt: number | null;
  grantExpiresAt: number | null;
  disabledAt: number | null;
  /** Null when the user isn't a member of the organization (any more). */
  role: Role | null;
  organizationId: string | null;
  plan: Plan | null;
};

type Granted = { aud?: string; scope?: string; exp: number };

/** The kinds of token that open something. */
export function isAccessToken(kind: string): boolean {
  return kind === "AccessToken" || kind === "ClientCredentials";
}

/**
 * Whether all tokens of the client were revoked after it authenticated for this one. Without a generation are the user
 * tokens of earlier versions, and every token of a client that is not stored.
 */
export function isOutdated({ generation, clientGeneration }: TokenRow): boolean {
  return generation !== null && generation !== clientGeneration;
}

/** The access token of a row whose payload was read, unless something that it depends on has ended. */
export function toActiveToken(row: TokenRow, { aud, scope, exp }: Granted): ActiveToken | undefined {
  if (row.expiresAt <= Date.now() || !aud || isOutdated(row)) return undefined;
  const acting = row.kind === "ClientCredentials" ? ofClient(row) : ofUser(row);
  return (
    acting && { ...acting, scopes: new Set(scope ? scope.split(" ") : []), audience: aud, expiresAt: exp }
  );
}

type Acting = Pick<ActiveToken, "clientId" | "userId" | "organizationId" | "plan" | "role">;

function ofClient(row: TokenRow): Acting | undefined {
  if (!row.clientOrganizationId || row.generation === null) return undefined;
  return { clientId: row.clientId, organizationId: row.clientOrganizationId, plan: row.clientPlan as Plan };
}

function ofUser(row: TokenRow): Acting | undefined {
  const { userId, organizationId, plan } = row;
  if (!userId || !organizationId || !plan) return undefined;
  if (row.revokedAt !== null || (row.grantExpiresAt as number) <= Date.now()) return undefined;
  if (row.disabledAt !== null || !row.role) return undefined;
  // A client known by its metadata document belongs to no organization; every other one must still exist.
  const isOwn = row.clientOrganizationId !== null;
  if (!isOwn && !row.clientId.startsWith("https://")) return undefined;
  return {
    clientId: row.clientId,
    userId,
    organizationId,
    plan: isOwn && row.clientPlan === "free" ? "free" : plan,
    role: row.role,
  };
}
