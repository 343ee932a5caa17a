import type { OrganizationRow } from "../database/tables.ts";
import { clientKindOf } from "./client-kinds.ts";

/** Which clients besides its own an organization lets act for its members: known ones, any, or none. */
export type AllowedClients = OrganizationRow["document_clients"];

/** Returns whether an organization lets a client act for its members. */
export type ClientPolicy = (clientId: string, allowed: AllowedClients) => boolean;

/** What a server accepts, even if an organization allows more: `known` contains the ids of known clients. */
type AcceptedClients = { accepted: "known" | "any" | "off"; known: Pick<ReadonlySet<string>, "has"> };

/** The policy of a process that checks no tokens, such as a command. */
export const OWN_CLIENTS_ONLY: ClientPolicy = createClientPolicy({ accepted: "off", known: new Set() });

/** Creates the policy of a server, which is derived from its settings with every check. */
export function createClientPolicy({ accepted, known }: AcceptedClients): ClientPolicy {
  return (clientId, allowed) => {
    if (clientKindOf(clientId) !== "document") return true;
    if (accepted === "off" || allowed === "none") return false;
    return known.has(clientId) || (accepted === "any" && allowed === "any");
  };
}
