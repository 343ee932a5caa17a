import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import { identityOf } from "./client-identity.ts";

/** What identifies an app to users. `publisher` is the host of its metadata document, null without one. */
export type AppIdentity = { name: string; publisher: string | null };

/** Returns the identity of an authorized app. */
export function describeApp({ appName, clientId }: Pick<AuthorizedApp, "appName" | "clientId">): AppIdentity {
  if (appName !== null) return { name: appName, publisher: null };
  return identityOf(clientId) ?? { name: clientId, publisher: null };
}
