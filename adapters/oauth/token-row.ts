import type { Knex } from "knex";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import type { LookupQuery } from "../database/lookup.ts";
import type { Flag } from "../database/tables.ts";
import { type ClientKind, clientKindOf } from "./client-kinds.ts";
import type { AllowedClients, ClientPolicy, MemberApps } from "./client-policy.ts";

/**
 * Selects a token with everything that its validity depends on, in one query: its client, the client's organization, its
 * grant, the user who approved it, the organization acted for, and that organization's policy on the client.
 */
export const TOKEN_BY_HASH: LookupQuery<JoinedTokenRow> = {
  build: selectToken,
  column: "hash",
  inTurn: true,
};

function selectToken(knex: Knex, hash: Knex.Raw): Knex.QueryBuilder {
  return knex("tokens as t")
    .leftJoin("clients as c", "c.id", "t.client_id")
    .leftJoin("organizations as co", "co.id", "c.organization_id")
    .leftJoin("grants as g", "g.id", "t.grant_id")
    .leftJoin("organizations as go", "go.id", "g.organization_id")
    .leftJoin("users as u", "u.id", "g.user_id")
    .leftJoin("memberships as m", (join) =>
      join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
    )
    .leftJoin("approved_apps as a", (join) =>
      join.on("a.organization_id", "g.organization_id").andOn("a.client_id", "t.client_id"),
    )
    .where("t.id_hash", hash)
    .select({
      hash: "t.id_hash",
      payload: "t.payload",
      kind: "t.kind",
      expiresAt: "t.expires_at",
      consumedAt: "t.consumed_at",
      generation: "t.generation",
      clientId: "t.client_id",
      clientGeneration: "c.generation",
      clientOrganizationId: "co.id",
      clientPlan: "co.plan",
      clientSuspendedAt: "co.suspended_at",
      clientDisabledAt: "c.disabled_at",
      clientRequiresDpop: "co.require_dpop",
      grantId: "g.id",
      grantPayload: knex.raw("case when t.kind in ('AuthorizationCode', 'RefreshToken') then g.payload end"),
      userId: "g.user_id",
      lastUsedAt: "g.last_used_at",
      revokedAt: "g.revoked_at",
      grantExpiresAt: "g.expires_at",
      username: "u.username",
      disabledAt: "u.disabled_at",
      role: "m.role",
      organizationId: "go.id",
      plan: "go.plan",
      suspendedAt: "go.suspended_at",
      allowedClients: "go.document_clients",
      memberApps: "go.member_apps",
      approvedClientId: "a.client_id",
      requiresDpop: "go.require_dpop",
    });
}

/** A row of `TOKEN_BY_HASH`. */
export type JoinedTokenRow = {
  hash: string;
  payload: string;
  kind: string;
  expiresAt: number;
  consumedAt: number | null;
  generation: number | null;
  clientId: string;
  clientGeneration: number | null;
  clientOrganizationId: string | null;
  clientPlan: Plan | null;
  clientSuspendedAt: number | null;
  clientDisabledAt: number | null;
  clientRequiresDpop: Flag | null;
  grantId: string | null;
  /** Only of codes and refresh tokens, whose grant is read next. */
  grantPayload: string | null;
  userId: string | null;
  lastUsedAt: number | null;
  revokedAt: number | null;
  grantExpiresAt: number | null;
  username: string | null;
  disabledAt: number | null;
  /** Null if the user isn't a member of the organization. */
  role: Role | null;
  organizationId: string | null;
  plan: Plan | null;
  suspendedAt: number | null;
  allowedClients: AllowedClients | null;
  memberApps: MemberApps | null;
  /** Null if the organization has not approved the client for members. */
  approvedClientId: string | null;
  requiresDpop: Flag | null;
};

type TokenPayload = { aud?: string; scope?: string; exp: number; jkt?: string };

/** Returns whether a model name is that of an access token. */
export function isAccessToken(kind: string): boolean {
  return kind === "AccessToken" || kind === "ClientCredentials";
}

/**
 * Returns whether all tokens of the client were revoked after it authenticated for this one. Tokens of clients that are
 * not stored have no generation.
 */
export function isOutdated({ generation, clientGeneration }: JoinedTokenRow): boolean {
  return generation !== null && generation !== clientGeneration;
}

/** Returns whether the client's organization or the one acted for requires tokens to be bound to a key. */
export function requiresDpop(row: JoinedTokenRow): boolean {
  return Boolean(row.clientRequiresDpop || row.requiresDpop);
}

/** Returns the access token of a row and its parsed payload, or undefined if it is no longer active. */
export function toActiveToken(
  row: JoinedTokenRow,
  { aud, scope, exp, jkt }: TokenPayload,
  clientPolicy: ClientPolicy,
): ActiveToken | undefined {
  if (row.expiresAt <= Date.now() || !aud || isOutdated(row)) return undefined;
  if (row.clientDisabledAt !== null) return undefined;
  const caller = row.kind === "ClientCredentials" ? clientOf(row) : userOf(row, clientPolicy);
  if (!caller) return undefined;
  return {
    ...caller,
    scopes: new Set(scope ? scope.split(" ") : []),
    audience: aud,
    expiresAt: exp,
    ...(jkt && { jkt }),
    ...(isSuspended(row) && { suspended: true }),
    requiresDpop: requiresDpop(row),
  };
}

/** Returns whether the client's organization or the one acted for is suspended. */
function isSuspended({ clientSuspendedAt, suspendedAt }: JoinedTokenRow): boolean {
  return clientSuspendedAt !== null || suspendedAt !== null;
}

const NOT_STORED = new Set<ClientKind>(["document", "registered"]);

type TokenCaller = Pick<ActiveToken, "clientId" | "userId" | "organizationId" | "plan" | "role">;

function clientOf(row: JoinedTokenRow): TokenCaller | undefined {
  if (!row.clientOrganizationId || row.generation === null) return undefined;
  return { clientId: row.clientId, organizationId: row.clientOrganizationId, plan: row.clientPlan as Plan };
}

function userOf(row: JoinedTokenRow, clientPolicy: ClientPolicy): TokenCaller | undefined {
  const { userId, organizationId, plan, allowedClients, memberApps } = row;
  if (!userId || !organizationId || !plan || !allowedClients || !memberApps) return undefined;
  if (row.revokedAt !== null || (row.grantExpiresAt as number) <= Date.now()) return undefined;
  if (row.disabledAt !== null || !row.role) return undefined;
  // Clients with a metadata document and registered ones belong to no organization. Any other client must still exist.
  const isStored = row.clientOrganizationId !== null;
  if (!isStored && !NOT_STORED.has(clientKindOf(row.clientId))) return undefined;
  const policy = { allowedClients, memberApps, isApproved: row.approvedClientId !== null };
  if (!clientPolicy(row.clientId, policy, row.role)) return undefined;
  return {
    clientId: row.clientId,
    userId,
    organizationId,
    plan: isStored && row.clientPlan === "free" ? "free" : plan,
    role: row.role,
  };
}
