import type { ClientView, Rotation } from "../adapters/clients.ts";
import type { PlanChange } from "../adapters/organizations.ts";

/** A client as its owner sees it: ids, last four characters and times, never a secret. */
export function showClient({ clientId, redirectUris, secrets }: ClientView) {
  return {
    client_id: clientId,
    redirect_uris: redirectUris,
    secrets: secrets.map(({ id, last4, createdAt, expiresAt, lastUsedAt }) => ({
      id,
      last4,
      created_at: toTime(createdAt),
      expires_at: toTime(expiresAt),
      last_used_at: toTime(lastUsedAt),
    })),
  };
}

/** A new secret, the one time that it is shown. */
export function showRotation({ clientId, clientSecret, previousExpiresAt }: Rotation) {
  return { client_id: clientId, client_secret: clientSecret, previous_expires_at: toTime(previousExpiresAt) };
}

/** An organization after a change of its plan; the client with its secret when this made it. */
export function showPlanChange({ organization, client }: PlanChange) {
  return {
    organization,
    ...(client && { client: { client_id: client.clientId, client_secret: client.clientSecret } }),
  };
}

function toTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
