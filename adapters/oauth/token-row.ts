import type { ActiveToken } from "../../resources/access/introspect.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import type { LookupQuery } from "../database/batches.ts";
import type { Database } from "../database/index.ts";
import type { Flag } from "../database/tables/columns.ts";
import {
  type AllowedClients,
  type AppPolicyCheck,
  type ClientKind,
  clientKindOf,
  type MemberApps,
} from "./app-policy.ts";
import type { GrantUsage } from "./grant-usage.ts";
import { tokenKey } from "./token-keys.ts";

/** Selects a token with everything that its validity depends on, in one query. */
export const TOKEN_BY_HASH: LookupQuery<JoinedTokenRow> = {
  build: (knex, hash) =>
    knex("tokens as t")
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
        clientFapi: "c.fapi",
        grantId: "g.id",
        grantPayload: knex.raw(
          "case when t.kind in ('AuthorizationCode', 'RefreshToken') then g.payload end",
        ),
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
      }),
  column: "hash",
  inTurn: true,
};

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
  clientFapi: Flag | null;
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

/** Creates a function that finds an active access token in one statement and records the use of its grant. */
export function createTokenReader({ lookup }: Database, usage: GrantUsage, appPolicyCheck: AppPolicyCheck) {
  const find = lookup(TOKEN_BY_HASH);
  return async (token: string): Promise<ActiveToken | undefined> => {
    const [row] = await find(tokenKey(token));
    if (!row || !isAccessToken(row.kind)) return undefined;
    const active = toActiveToken(row, JSON.parse(row.payload), appPolicyCheck);
    if (active) usage.record(row);
    return active;
  };
}

type TokenPayload = { aud?: string; scope?: string; exp: number; jkt?: string };

export function isAccessToken(kind: string): boolean {
  return kind === "AccessToken" || kind === "ClientCredentials";
}

/** Whether the client's tokens were revoked after it authenticated for this one. Unstored clients have none. */
export function isOutdated({ generation, clientGeneration }: JoinedTokenRow): boolean {
  return generation !== null && generation !== clientGeneration;
}

export function requiresDpop(row: JoinedTokenRow): boolean {
  return Boolean(row.clientFapi || row.clientRequiresDpop || row.requiresDpop);
}

/** Returns the access token of a row and its parsed payload, or undefined if it is no longer active. */
export function toActiveToken(
  row: JoinedTokenRow,
  { aud, scope, exp, jkt }: TokenPayload,
  appPolicyCheck: AppPolicyCheck,
): ActiveToken | undefined {
  if (row.expiresAt <= Date.now() || !aud || isOutdated(row)) return undefined;
  if (row.clientDisabledAt !== null) return undefined;
  const caller = row.kind === "ClientCredentials" ? clientOf(row) : userOf(row, appPolicyCheck);
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

function isSuspended({ clientSuspendedAt, suspendedAt }: JoinedTokenRow): boolean {
  return clientSuspendedAt !== null || suspendedAt !== null;
}

/** `role` is null once the user has left; `isClientAllowed` is whether the organization lets the client act. */
export type GrantStatus = {
  organizationId: string;
  role: Role | null;
  plan: Plan;
  suspended: boolean;
  isClientAllowed: boolean;
};

/** The user of a grant and its state, as of when its code or refresh token was read. */
export type GrantHolder = { userId: string; username: string; disabled: boolean; status?: GrantStatus };

/** Returns the state of a grant that isn't revoked. */
function toGrantStatus(row: JoinedTokenRow, appPolicyCheck: AppPolicyCheck): GrantStatus | undefined {
  const { clientId, organizationId, role, plan, allowedClients, memberApps } = row;
  if (!organizationId || !plan || !allowedClients || !memberApps) return undefined;
  const policy = { allowedClients, memberApps, isApproved: row.approvedClientId !== null };
  return {
    organizationId,
    role,
    plan,
    suspended: row.suspendedAt !== null,
    isClientAllowed: role !== null && appPolicyCheck(clientId, policy, role),
  };
}

/** Returns the user and the grant of a code or refresh token whose grant isn't revoked. */
export function toGrantHolder(row: JoinedTokenRow, appPolicyCheck: AppPolicyCheck): GrantHolder | undefined {
  const { userId, username, disabledAt } = row;
  if (!userId || username === null) return undefined;
  const status = toGrantStatus(row, appPolicyCheck);
  return { userId, username, disabled: disabledAt !== null, ...(status && { status }) };
}

const NOT_STORED = new Set<ClientKind>(["document", "registered"]);

type TokenCaller = Pick<ActiveToken, "clientId" | "userId" | "organizationId" | "plan" | "role">;

function clientOf(row: JoinedTokenRow): TokenCaller | undefined {
  if (!row.clientOrganizationId || row.generation === null) return undefined;
  return { clientId: row.clientId, organizationId: row.clientOrganizationId, plan: row.clientPlan as Plan };
}

function userOf(row: JoinedTokenRow, appPolicyCheck: AppPolicyCheck): TokenCaller | undefined {
  const { userId, role } = row;
  const status = toGrantStatus(row, appPolicyCheck);
  if (!userId || !role || !status) return undefined;
  if (row.revokedAt !== null || (row.grantExpiresAt as number) <= Date.now()) return undefined;
  if (row.disabledAt !== null) return undefined;
  // Clients with a document and registered ones belong to no organization. Any other client must still exist.
  const isStored = row.clientOrganizationId !== null;
  if (!isStored && !NOT_STORED.has(clientKindOf(row.clientId))) return undefined;
  if (!status.isClientAllowed) return undefined;
  const plan = isStored && row.clientPlan === "free" ? "free" : status.plan;
  return { clientId: row.clientId, userId, organizationId: status.organizationId, plan, role };
}
