import type { KeyView } from "../../adapters/oauth/client-keys.ts";
import type { Disabled } from "../../adapters/oauth/client-switch.ts";
import type { ClientView, Rotation } from "../../adapters/oauth/clients.ts";
import type { PlanChange } from "../../adapters/organizations/store.ts";

/** Returns a client as its organization sees it: ids, last four characters and times, never a secret. */
export function showClient({ clientId, redirectUris, secrets, keys, disabled }: ClientView) {
  return {
    client_id: clientId,
    redirect_uris: redirectUris,
    secrets: secrets.map(({ id, last4, createdAt, expiresAt, lastUsedAt, callers }) => ({
      id,
      last4,
      created_at: toTimestamp(createdAt),
      expires_at: toTimestamp(expiresAt),
      last_used_at: toTimestamp(lastUsedAt),
      callers: callers.map((caller) => ({
        program: caller.program,
        network: caller.network,
        last_used_at: toTimestamp(caller.lastUsedAt),
      })),
    })),
    keys: keys.map(showKey),
    ...(disabled && { disabled: showDisabled(disabled) }),
  };
}

/** Returns who disabled a client, when and why. */
export function showDisabled({ at, by, reason }: Disabled) {
  return { at: toTimestamp(at), by, reason };
}

/** Returns a public key of a client by its thumbprint (RFC 7638). */
export function showKey({ id, thumbprint, createdAt, lastUsedAt }: KeyView) {
  return {
    id,
    thumbprint,
    created_at: toTimestamp(createdAt),
    last_used_at: toTimestamp(lastUsedAt),
  };
}

/** Returns a new client secret, which is shown only once. */
export function showRotation({ clientId, clientSecret, previousExpiresAt }: Rotation) {
  return {
    client_id: clientId,
    client_secret: clientSecret,
    previous_expires_at: toTimestamp(previousExpiresAt),
  };
}

/** Returns an organization after a plan change; with the client and its secret if the change created them. */
export function showPlanChange({ organization, client }: PlanChange) {
  return {
    organization,
    ...(client && { client: { client_id: client.clientId, client_secret: client.clientSecret } }),
  };
}

function toTimestamp(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
