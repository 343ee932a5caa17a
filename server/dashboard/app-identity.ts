import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import { publishedIdentityOf } from "../provider/known-clients.ts";

/** What identifies an app to users. `publisher` is the host of its metadata document, null for an organization's client. */
export type AppIdentity = { name: string; publisher: string | null };

/** Returns the identity of an authorized app. */
export function describeApp({ appName, clientId }: Pick<AuthorizedApp, "appName" | "clientId">): AppIdentity {
  if (appName !== null) return { name: appName, publisher: null };
  return publishedIdentityOf(clientId) ?? { name: clientId, publisher: null };
}
