import type { ActiveToken } from "../../resources/access/introspect.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import { sha256 } from "../crypto/ids.ts";
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
import type { GrantUseRecorder } from "./grant-use-recorder.ts";

// Milliseconds in base 36 have nine digits until the year 5188.
const TIME_LENGTH = 9;
// A prefix, the time of issue, 256 random bits, and the checksum.
const TIMED_TOKEN = /^lg[ar]_([0-9a-z]{9})[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/;
const KEY_LENGTH = 43;

/** Returns the current time as tokens contain it after their prefix: milliseconds in base 36 (0-9, a-z). */
export function tokenTime(): string {
  return Date.now().toString(36).padStart(TIME_LENGTH, "0");
}

/** The time in a token and 204 bits of its hash: appended to the index, where random keys would write a page each. */
export function tokenKey(token: string): string {
  const time = TIMED_TOKEN.exec(token)?.[1] ?? "";
  return (time + sha256(token)).slice(0, KEY_LENGTH);
}

/** Serializes what oidc-provider stores, without `jti`: the token, or the id of the session or grant. */
export function toStored(payload: { jti?: string | undefined }): string {
  const { jti: _, ...rest } = payload;
  return JSON.stringify(rest);
}

/** Selects a token with everything that its validity depends on, in one query. */
export const TOKEN_BY_HASH: LookupQuery<JoinedTokenRow> = {
  sql: `select t.id_hash as hash, t.payload, t.kind, t.expires_at as "expiresAt", t.consumed_at as "consumedAt",
      t.generation, t.client_id as "clientId", c.generation as "clientGeneration",
      co.id as "clientOrganizationId", co.plan as "clientPlan", co.default_domain as "clientDefaultDomain", co.suspended_at as "clientSuspendedAt",
      c.disabled_at as "clientDisabledAt", co.require_dpop as "clientRequiresDpop", c.fapi as "clientFapi",
      g.id as "grantId", case when t.kind in ('AuthorizationCode', 'DeviceCode', 'RefreshToken') then g.payload end as "grantPayload",
      g.user_id as "userId", g.last_used_at as "lastUsedAt", g.revoked_at as "revokedAt",
      g.expires_at as "grantExpiresAt", u.username, u.disabled_at as "disabledAt", m.role,
      granting.id as "organizationId", granting.plan, granting.default_domain as "defaultDomain", granting.suspended_at as "suspendedAt",
      granting.document_clients as "allowedClients", granting.member_apps as "memberApps",
      a.client_id as "approvedClientId", granting.require_dpop as "requiresDpop"
    from tokens as t
    left join clients as c on c.id = t.client_id
    left join organizations as co on co.id = c.organization_id
    left join grants as g on g.id = t.grant_id
    left join organizations as granting on granting.id = g.organization_id
    left join users as u on u.id = g.user_id
    left join memberships as m on m.user_id = g.user_id and m.organization_id = g.organization_id
    left join approved_apps as a on a.organization_id = g.organization_id and a.client_id = t.client_id
    where t.id_hash = :key`,
  column: "hash",
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
  clientDefaultDomain: string | null;
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
  defaultDomain: string | null;
  suspendedAt: number | null;
  allowedClients: AllowedClients | null;
  memberApps: MemberApps | null;
  /** Null if the organization has not approved the client for members. */
  approvedClientId: string | null;
  requiresDpop: Flag | null;
};

/** Creates a function that finds an active access token in one statement and records the use of its grant. */
export function createTokenReader(
  { lookup }: Database,
  grantUse: GrantUseRecorder,
  appPolicyCheck: AppPolicyCheck,
) {
  const find = lookup(TOKEN_BY_HASH);
  return async (token: string): Promise<ActiveToken | undefined> => {
    const [row] = await find(tokenKey(token));
    if (!row || !isAccessToken(row.kind)) return undefined;
    const active = toActiveToken(row, JSON.parse(row.payload), appPolicyCheck);
    if (active?.userId) grantUse.record(row);
    return active;
  };
}

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
  { aud, scope, exp, jkt }: { aud?: string; scope?: string; exp: number; jkt?: string },
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

type TokenCaller = Pick<
  ActiveToken,
  "clientId" | "userId" | "organizationId" | "plan" | "role" | "defaultDomain"
>;

function clientOf(row: JoinedTokenRow): TokenCaller | undefined {
  const { clientId, clientOrganizationId: organizationId, clientDefaultDomain: defaultDomain } = row;
  if (!organizationId || row.generation === null) return undefined;
  return { clientId, organizationId, plan: row.clientPlan as Plan, defaultDomain };
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
  const { clientId, defaultDomain } = row;
  return { clientId, userId, organizationId: status.organizationId, plan, role, defaultDomain };
}
