import type { Role } from "../../resources/access/scopes.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";

/** Only `organization` clients are stored. Ids of `document` and `registered` ones contain or locate their data. */
export type ClientKind = "organization" | "document" | "registered" | "service";

export const REGISTERED_PREFIX = "lgd_";

export function clientKindOf(clientId: string): ClientKind {
  if (clientId.startsWith("lgc_")) return "organization";
  if (clientId.startsWith("https://")) return "document";
  if (clientId.startsWith(REGISTERED_PREFIX)) return "registered";
  return "service";
}

/** Which third-party clients may act for an organization's members: known ones, any, or none. */
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
export type AppPolicyCheck = (clientId: string, policy: AppPolicy, role: Role) => boolean;

/** What a server accepts, even if an organization allows more. */
type AcceptedClients = {
  documents: "known" | "any" | "off";
  isKnown(clientId: string): boolean;
  registration: boolean;
};

/** The policy of a process that checks no tokens, such as a command. */
export const OWN_CLIENTS_ONLY: AppPolicyCheck = createAppPolicyCheck({
  documents: "off",
  isKnown: () => false,
  registration: false,
});

/** Creates the policy of a server, which is derived from its settings with every check. */
export function createAppPolicyCheck({ documents, isKnown, registration }: AcceptedClients): AppPolicyCheck {
  const isAccepted: Record<ClientKind, (clientId: string, allowed: AllowedClients) => boolean> = {
    organization: () => true,
    service: () => true,
    document: (id, allowed) =>
      documents !== "off" && (isKnown(id) ? allowed !== "none" : documents === "any" && allowed === "any"),
    registered: (id, allowed) => registration && (isKnown(id) ? allowed !== "none" : allowed === "any"),
  };
  return (clientId, { allowedClients, memberApps, isApproved }, role) => {
    if (!isAccepted[clientKindOf(clientId)](clientId, allowedClients)) return false;
    return role !== "member" || memberApps === "any" || (memberApps === "approved" && isApproved);
  };
}
