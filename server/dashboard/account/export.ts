import type { AllowedApp } from "../../adapters/grants.ts";
import type { Storage } from "../../adapters/index.ts";
import type { SignIn } from "../../adapters/sign-ins.ts";
import { allowedByRole } from "../../resources/scopes.ts";
import type { Person } from "./person.ts";

type Stores = Pick<Storage, "accounts" | "identities" | "signIns" | "organizations" | "grants">;

/** Who the person is, how he or she can sign in, and where that was done. */
export async function showAccount(stores: Stores, person: Person) {
  const { id, username } = person;
  const [account, organizations, identities, signIns] = await Promise.all([
    stores.accounts.find(id),
    stores.organizations.ofUser(id),
    stores.identities.ofUser(id),
    stores.signIns.ofUser(id),
  ]);
  return {
    user: { id, username, has_password: account !== undefined && account.passwordHash !== null },
    organizations,
    identities: identities.map(({ createdAt, ...identity }) => ({
      ...identity,
      created_at: toTime(createdAt),
    })),
    sessions: signIns.map((one) => showSignIn(one, person)),
  };
}

/** Where the person is signed in. */
export function showSignIn(
  { createdAt, lastSeenAt, userAgent, ...rest }: SignIn,
  { signInId }: Pick<Person, "signInId">,
) {
  return {
    ...rest,
    user_agent: userAgent,
    created_at: toTime(createdAt),
    last_seen_at: lastSeenAt === null ? null : toTime(lastSeenAt),
    current: rest.id === signInId,
  };
}

/** All that is kept about the person himself or herself; links and the rest belong to organizations. */
export async function exportOf(stores: Stores, person: Person) {
  const [account, apps] = await Promise.all([showAccount(stores, person), stores.grants.ofUser(person.id)]);
  return { exported_at: toTime(Date.now()), ...account, apps: apps.map(showApp) };
}

/** What the person has allowed. */
function showApp({
  id,
  clientId,
  organizationId,
  appName,
  role,
  scopes,
  grantedAt,
  expiresAt,
  lastUsedAt,
}: AllowedApp) {
  return {
    id,
    app: appName,
    client_id: clientId,
    organization_id: organizationId,
    scopes: allowedByRole(scopes, role),
    granted_at: toTime(grantedAt),
    expires_at: toTime(expiresAt),
    last_used_at: lastUsedAt === null ? null : toTime(lastUsedAt),
  };
}

function toTime(at: number): string {
  return new Date(at).toISOString();
}
