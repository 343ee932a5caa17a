import type { KeyView } from "../../adapters/oauth/client-keys.ts";
import type { ClientProfile, ClientView, Rotation } from "../../adapters/oauth/clients.ts";
import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import type { ApprovedApp } from "../../adapters/organizations/approved-apps.ts";
import type { PlanChange } from "../../adapters/organizations/store.ts";
import { allowedByRole, withoutImplied } from "../../resources/access/scopes.ts";
import { type AppIdentity, describeApp } from "./app-identity.ts";

/** Returns a client as its organization sees it: ids, last four characters and times, never a secret. */
export function clientToJson({ clientId, redirectUris, secrets, keys, disabled, fapi }: ClientView) {
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
    keys: keys.map(keyToJson),
    fapi,
    ...(disabled && { disabled: disabledToJson(disabled) }),
  };
}

/** Returns since when and why a client or user is disabled, or an organization suspended. */
export function disabledToJson<Why extends { reason: string | null }>({ at, ...why }: Why & { at: number }) {
  return { at: toTimestamp(at), ...why };
}

export function keyToJson({ id, thumbprint, createdAt, lastUsedAt }: KeyView) {
  return {
    id,
    thumbprint,
    created_at: toTimestamp(createdAt),
    last_used_at: toTimestamp(lastUsedAt),
  };
}

export function rotationToJson({ clientId, clientSecret, previousExpiresAt }: Rotation) {
  return {
    client_id: clientId,
    client_secret: clientSecret,
    previous_expires_at: toTimestamp(previousExpiresAt),
  };
}

/** Names are those of RFC 7591 §2. */
export function profileToJson(profile: Pick<ClientProfile, "name" | "homepage"> | undefined) {
  return { client_name: profile?.name ?? null, client_uri: profile?.homepage ?? null };
}

/** With the client and its secret if the plan change created them. */
export function planChangeToJson({ organization, client }: PlanChange) {
  return {
    organization,
    ...(client && { client: { client_id: client.clientId, client_secret: client.clientSecret } }),
  };
}

export type ShownApp = AuthorizedApp & AppIdentity;

/** Leaves the app the scopes that it can use. */
export function describeAuthorizedApp(app: AuthorizedApp): ShownApp {
  return { ...app, ...describeApp(app), scopes: withoutImplied(allowedByRole(app.scopes, app.role)) };
}

export function appToJson({ id, name, clientId, publisher, scopes, ...app }: ShownApp) {
  return {
    id,
    app: name,
    client_id: clientId,
    published_by: publisher,
    scopes,
    granted_at: toTimestamp(app.grantedAt),
    expires_at: toTimestamp(app.expiresAt),
    last_used_at: toTimestamp(app.lastUsedAt),
  };
}

export type ShownApproval = ApprovedApp & AppIdentity;

export function describeApproval(approved: ApprovedApp): ShownApproval {
  return { ...approved, ...describeApp(approved) };
}

export function approvalToJson({ id, clientId, name, publisher, approvedBy, approvedAt }: ShownApproval) {
  return {
    id,
    client_id: clientId,
    app: name,
    published_by: publisher,
    approved_by: approvedBy,
    approved_at: toTimestamp(approvedAt),
  };
}

/** Converts epoch milliseconds to RFC 3339. */
export function toTimestamp(at: number): string;
export function toTimestamp(at: number | null): string | null;
export function toTimestamp(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
