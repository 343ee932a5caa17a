import type { ClientProfile } from "../../adapters/oauth/clients.ts";
import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import type { PlanChange } from "../../adapters/organizations/store.ts";
import { allowedByRole, withoutImplied } from "../../resources/access/scopes.ts";
import { toTimestamp } from "../../resources/http/to-json.ts";
import { type AppIdentity, describeApp } from "./app-identity.ts";

/** Returns since when and why a client or user is disabled, or an organization suspended. */
export function disabledToJson<Why extends { reason: string | null }>({ at, ...why }: Why & { at: number }) {
  return { at: toTimestamp(at), ...why };
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
