import type { Plan } from "../resources/plans.ts";
import type { ActiveToken } from "../resources/ports.ts";
import type { Database } from "./database.ts";
import { sha256 } from "./hash.ts";
import { unplanned } from "./statement.ts";

/**
 * Finds a live access token with all that its life depends on, in one statement: the token, its client with that
 * client's organization, its grant, the person who allowed it, and the organization acted for.
 */
export function createTokenReader({
  prepare,
}: Database): (token: string) => Promise<ActiveToken | undefined> {
  const lookUp = prepare<TokenRow[]>((knex, { hash }) =>
    knex("tokens as t")
      .leftJoin("clients as c", "c.id", "t.client_id")
      .leftJoin("organizations as co", "co.id", "c.organization_id")
      .leftJoin("grants as g", "g.id", "t.grant_id")
      .leftJoin("organizations as go", "go.id", "g.organization_id")
      .leftJoin("users as u", "u.id", "g.user_id")
      .leftJoin("memberships as m", (join) =>
        join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
      )
      .where("t.id_hash", unplanned(knex, hash))
      .whereRaw("t.kind in ('AccessToken', 'ClientCredentials')")
      .select({
        payload: "t.payload",
        kind: "t.kind",
        expiresAt: "t.expires_at",
        generation: "t.generation",
        clientId: "t.client_id",
        clientGeneration: "c.generation",
        clientOrganizationId: "co.id",
        clientPlan: "co.plan",
        userId: "g.user_id",
        revokedAt: "g.revoked_at",
        grantExpiresAt: "g.expires_at",
        disabledAt: "u.disabled_at",
        memberId: "m.user_id",
        organizationId: "go.id",
        plan: "go.plan",
      }),
  );

  return async (token) => {
    const [row] = await lookUp({ hash: sha256(token) });
    if (!row || row.expiresAt <= Date.now()) return undefined;
    const { aud, scope, exp } = JSON.parse(row.payload);
    const active = row.kind === "ClientCredentials" ? ofClient(row) : ofUser(row);
    if (!active || !aud) return undefined;
    return { ...active, scopes: new Set(scope ? scope.split(" ") : []), audience: aud, expiresAt: exp };
  };
}

type Acting = Pick<ActiveToken, "clientId" | "userId" | "organizationId" | "plan">;

function ofClient(row: TokenRow): Acting | undefined {
  if (!row.clientOrganizationId || row.generation !== row.clientGeneration) return undefined;
  return { clientId: row.clientId, organizationId: row.clientOrganizationId, plan: row.clientPlan as Plan };
}

function ofUser(row: TokenRow): Acting | undefined {
  const { userId, organizationId, plan } = row;
  if (!userId || !organizationId || !plan) return undefined;
  if (row.revokedAt !== null || (row.grantExpiresAt as number) <= Date.now()) return undefined;
  if (row.disabledAt !== null || !row.memberId) return undefined;
  // A client known by its metadata document belongs to no organization; every other one must still exist.
  const isOwn = row.clientOrganizationId !== null;
  if (!isOwn && !row.clientId.startsWith("https://")) return undefined;
  return {
    clientId: row.clientId,
    userId,
    organizationId,
    plan: isOwn && row.clientPlan === "free" ? "free" : plan,
  };
}

type TokenRow = {
  payload: string;
  kind: string;
  expiresAt: number;
  generation: number | null;
  clientId: string;
  clientGeneration: number | null;
  clientOrganizationId: string | null;
  clientPlan: Plan | null;
  userId: string | null;
  revokedAt: number | null;
  grantExpiresAt: number | null;
  disabledAt: number | null;
  memberId: string | null;
  organizationId: string | null;
  plan: Plan | null;
};
