import type { OrganizationRow } from "../database/tables.ts";
import { type ClientKind, clientKindOf } from "./client-kinds.ts";

/** Which clients besides those of organizations may act for an organization's members: known ones, any, or none. */
export type AllowedClients = OrganizationRow["document_clients"];

/** Returns whether an organization lets a client act for its members. */
export type ClientPolicy = (clientId: string, allowed: AllowedClients) => boolean;

/** What a server accepts, even if an organization allows more. */
type AcceptedClients = {
  documents: "known" | "any" | "off";
  /** Contains the ids of known clients. */
  known: Pick<ReadonlySet<string>, "has">;
  /** Whether clients may register themselves. */
  registration: boolean;
};

/** The policy of a process that checks no tokens, such as a command. */
export const OWN_CLIENTS_ONLY: ClientPolicy = createClientPolicy({
  documents: "off",
  known: new Set(),
  registration: false,
});

/** Creates the policy of a server, which is derived from its settings with every check. */
export function createClientPolicy({ documents, known, registration }: AcceptedClients): ClientPolicy {
  const isAccepted: Record<ClientKind, ClientPolicy> = {
    organization: () => true,
    service: () => true,
    document: (id, allowed) =>
      documents !== "off" && (known.has(id) ? allowed !== "none" : documents === "any" && allowed === "any"),
    registered: (id, allowed) => registration && (known.has(id) ? allowed !== "none" : allowed === "any"),
  };
  return (clientId, allowed) => isAccepted[clientKindOf(clientId)](clientId, allowed);
}
