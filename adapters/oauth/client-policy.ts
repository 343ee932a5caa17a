import type { Role } from "../../resources/access/scopes.ts";
import type { OrganizationRow } from "../database/tables.ts";
import { type ClientKind, clientKindOf } from "./client-kinds.ts";

/** Which clients besides those of organizations may act for an organization's members: known ones, any, or none. */
export type AllowedClients = OrganizationRow["document_clients"];

/** Which apps the role `member` may authorize: any, those that owners and admins approved, or none. */
export type MemberApps = OrganizationRow["member_apps"];

/** The policy of an organization on a client. */
export type AppPolicy = {
  allowedClients: AllowedClients;
  memberApps: MemberApps;
  /** Whether an owner or admin of the organization approved the client for members. */
  isApproved: boolean;
};

/** Returns whether an organization lets a client act for a user with a role. */
export type ClientPolicy = (clientId: string, policy: AppPolicy, role: Role) => boolean;

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
  const isAccepted: Record<ClientKind, (clientId: string, allowed: AllowedClients) => boolean> = {
    organization: () => true,
    service: () => true,
    document: (id, allowed) =>
      documents !== "off" && (known.has(id) ? allowed !== "none" : documents === "any" && allowed === "any"),
    registered: (id, allowed) => registration && (known.has(id) ? allowed !== "none" : allowed === "any"),
  };
  return (clientId, policy, role) =>
    isAccepted[clientKindOf(clientId)](clientId, policy.allowedClients) && isOpenTo(role, policy);
}

/** Returns whether users with a role may authorize a client whose kind is accepted. */
export function isOpenTo(role: Role, { memberApps, isApproved }: Omit<AppPolicy, "allowedClients">): boolean {
  if (role !== "member" || memberApps === "any") return true;
  return memberApps === "approved" && isApproved;
}
