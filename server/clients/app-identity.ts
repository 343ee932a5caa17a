import { clientKindOf } from "../../adapters/oauth/app-policy.ts";
import type { ClientProfile, ClientStore } from "../../adapters/oauth/clients.ts";
import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import { isPublicUrl } from "../../resources/outbound/ssrf-guard.ts";
import { isClientId } from "./client-metadata.ts";
import { CLI_CLIENT, knownDocumentOf } from "./known-clients.ts";
import { claimedNameOf, type RegisteredClientIds } from "./registered-client-id.ts";

export type AppIdentity = {
  /** The name of a known client. One with another document is called by its host: it could claim any name. */
  name: string;
  /** The host of a metadata document, or an organization whose client has a name of its own. */
  publisher: string | null;
};

export type ClientIdentity = AppIdentity & { isKnown: boolean };

export function identityOf(clientId: string): ClientIdentity | undefined {
  const kind = clientKindOf(clientId);
  if (kind === "registered")
    return { name: claimedNameOf(clientId) ?? clientId, publisher: null, isKnown: false };
  if (kind !== "document") return undefined;
  const publisher = clientId === CLI_CLIENT ? "linkgate" : new URL(clientId).host;
  const known = knownDocumentOf(clientId);
  return { name: String(known?.client_name ?? publisher), publisher, isKnown: known !== undefined };
}

type ListedApp = Pick<AuthorizedApp, "appName" | "appOrganization" | "clientId">;

export function describeApp({ clientId, appName, appOrganization }: ListedApp): AppIdentity {
  if (appName === null || appOrganization === null)
    return identityOf(clientId) ?? { name: clientId, publisher: null };
  return describeProfile({ name: appName, organizationName: appOrganization });
}

/** Describes the client of an organization. One without a name of its own has that of its organization. */
export function describeProfile({
  name,
  organizationName,
}: Pick<ClientProfile, "name" | "organizationName">): AppIdentity {
  return {
    name: name ?? organizationName,
    publisher: name === null || name === organizationName ? null : organizationName,
  };
}

/** Resolves to undefined for an id that no app can have. Without `registeredIds`, clients can't register. */
export async function findApp(
  clientId: string,
  clients: ClientStore,
  registeredIds?: Pick<RegisteredClientIds, "verify">,
): Promise<AppIdentity | undefined> {
  if (!isClientId(clientId)) return undefined;
  switch (clientKindOf(clientId)) {
    case "organization": {
      const profile = await clients.findProfile(clientId);
      return profile && describeProfile(profile);
    }
    case "document":
      return isPublicUrl(clientId) ? identityOf(clientId) : undefined;
    case "registered":
      return registeredIds?.verify(clientId) && identityOf(clientId);
    default:
      return undefined;
  }
}
