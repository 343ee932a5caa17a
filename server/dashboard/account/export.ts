import type { SecondFactors } from "../../../adapters/accounts/second-factors/index.ts";
import type { ActiveSession } from "../../../adapters/accounts/sessions.ts";
import type { Storage } from "../../../adapters/index.ts";
import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { allowedByRole } from "../../../resources/access/scopes.ts";
import { describeApp } from "../../clients/app-identity.ts";
import type { SignedInUser } from "../../http/state.ts";
import { showMembership } from "../membership-view.ts";

type Stores = Pick<
  Storage,
  "accounts" | "identities" | "secondFactors" | "sessions" | "organizations" | "grants"
>;

export async function showAccount(stores: Stores, user: SignedInUser, memberships: Membership[]) {
  const { id, username } = user;
  const [account, identities, factors, sessions] = await Promise.all([
    stores.accounts.find(id),
    stores.identities.listByUser(id),
    stores.secondFactors.find(id),
    stores.sessions.listByUser(id),
  ]);
  return {
    user: {
      id,
      username,
      has_password: account !== undefined && account.passwordHash !== null,
      email: account?.email ?? null,
    },
    organizations: memberships.map(showMembership),
    identities: identities.map(({ createdAt, ...identity }) => ({
      ...identity,
      created_at: toTime(createdAt),
    })),
    second_factors: showFactors(factors),
    sessions: sessions.map((session) => showSession(session, user)),
  };
}

function showFactors({ totp, passkeys, recoveryCodes }: SecondFactors) {
  return {
    totp: totp ? { created_at: toTime(totp.createdAt), last_used_at: toTimeOrNull(totp.lastUsedAt) } : null,
    passkeys: passkeys.map(({ id, name, createdAt, lastUsedAt }) => ({
      id,
      name,
      created_at: toTime(createdAt),
      last_used_at: toTimeOrNull(lastUsedAt),
    })),
    recovery_codes_left: recoveryCodes,
  };
}

export function showSession(
  { createdAt, lastSeenAt, userAgent, ...rest }: ActiveSession,
  { sessionId }: Pick<SignedInUser, "sessionId">,
) {
  return {
    ...rest,
    user_agent: userAgent,
    created_at: toTime(createdAt),
    last_seen_at: toTimeOrNull(lastSeenAt),
    current: rest.id === sessionId,
  };
}

/** Links and other resources belong to organizations, so they are not included. */
export async function exportOf(stores: Stores, user: SignedInUser) {
  const memberships = await stores.organizations.listByUser(user.id);
  const [account, apps] = await Promise.all([
    showAccount(stores, user, memberships),
    stores.grants.listByUser(user.id),
  ]);
  return { exported_at: toTime(Date.now()), ...account, apps: apps.map(showApp) };
}

function showApp(app: AuthorizedApp) {
  return {
    id: app.id,
    app: describeApp(app).name,
    client_id: app.clientId,
    organization_id: app.organizationId,
    scopes: allowedByRole(app.scopes, app.role),
    granted_at: toTime(app.grantedAt),
    expires_at: toTime(app.expiresAt),
    last_used_at: toTimeOrNull(app.lastUsedAt),
  };
}

function toTime(at: number): string {
  return new Date(at).toISOString();
}

function toTimeOrNull(at: number | null): string | null {
  return at === null ? null : toTime(at);
}
