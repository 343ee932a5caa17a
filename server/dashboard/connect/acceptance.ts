import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { Host } from "./host.ts";

/** What decides which apps can connect to an organization. */
export type Conditions = {
  plan: Plan;
  /** The metadata documents that the server accepts, and those that the organization does. */
  documents: { server: "known" | "any" | "off"; organization: "known" | "any" | "none" };
  /** How apps without a document can register themselves. */
  registration: "off" | "stateless";
  /** The server has a loopback address, which only apps on the same computer reach. */
  isLocal: boolean;
};

/** Why an app can't connect. */
export type Obstacle =
  | "plan_required"
  | "local_server"
  | "documents_disabled"
  | "documents_disallowed"
  | "registration_disabled"
  | "unknown_client";

/** Why a way in which an app identifies itself isn't accepted. */
export type Refusal = Extract<Obstacle, `${string}_disabled` | `${string}_disallowed`>;

/** Each way in which an app identifies itself, and why it isn't accepted; undefined if it is. */
export type Acceptance = Record<"knownDocument" | "otherDocument" | "registration", Refusal | undefined>;

/** Returns which kinds of apps can connect to an organization on a paid plan. */
export function acceptanceOf({ documents, registration }: Conditions): Acceptance {
  const { server, organization } = documents;
  return {
    knownDocument: documentObstacle(server !== "off", organization !== "none"),
    otherDocument: documentObstacle(server === "any", organization === "any"),
    registration: registrationObstacle(registration !== "off", organization === "any"),
  };
}

function documentObstacle(byServer: boolean, byOrganization: boolean): Refusal | undefined {
  if (!byServer) return "documents_disabled";
  return byOrganization ? undefined : "documents_disallowed";
}

function registrationObstacle(byServer: boolean, byOrganization: boolean): Refusal | undefined {
  if (!byServer) return "registration_disabled";
  return byOrganization ? undefined : "documents_disallowed";
}

/** Returns why a host can't connect, or undefined if it can. */
export function obstacleOf({ identity, isHosted }: Host, conditions: Conditions): Obstacle | undefined {
  if (!isPaid(conditions.plan)) return "plan_required";
  if (isHosted && conditions.isLocal) return "local_server";
  const accepted = acceptanceOf(conditions);
  if (identity === "document") return accepted.knownDocument;
  if (identity === "registration") return accepted.registration;
  if (!accepted.registration || !accepted.otherDocument) return undefined;
  const isDisallowed = [accepted.registration, accepted.otherDocument].includes("documents_disallowed");
  return isDisallowed ? "documents_disallowed" : "unknown_client";
}
