import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import { knownDocumentOf } from "./known-clients.ts";
import { claimedNameOf } from "./registered-client-id.ts";

/** What identifies a client that belongs to no organization to users. */
export type ClientIdentity = {
  /** The name of a known client. One with another document is called by its host: it could claim any name. */
  name: string;
  /** The host that publishes the metadata document; null for a registered client. */
  publisher: string | null;
  isKnown: boolean;
};

/** Returns the identity of a client with a metadata document or a registration, and undefined for any other client. */
export function identityOf(clientId: string): ClientIdentity | undefined {
  switch (clientKindOf(clientId)) {
    case "document":
      return documentIdentityOf(clientId);
    case "registered":
      return { name: claimedNameOf(clientId) ?? clientId, publisher: null, isKnown: false };
    default:
      return undefined;
  }
}

function documentIdentityOf(clientId: string): ClientIdentity {
  const publisher = new URL(clientId).host;
  const known = knownDocumentOf(clientId);
  return { name: String(known?.client_name ?? publisher), publisher, isKnown: known !== undefined };
}
