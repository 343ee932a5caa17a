import type { AllowedClients } from "../../../adapters/oauth/client-policy.ts";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { Settings } from "../../config.ts";
import type { Host } from "./host.ts";

/** What decides which apps can connect to an organization. */
export type Conditions = Pick<Settings, "CIMD" | "DYNAMIC_REGISTRATION"> & {
  plan: Plan;
  /** What the organization allows. */
  allowed: AllowedClients;
  /** The organization accepts only tokens that are bound to a key. */
  requiresDpop: boolean;
  /** The server has a loopback address, which only apps on the same computer reach. */
  isLocal: boolean;
};

/** Why the server or the organization doesn't accept a kind of app. */
export type Refusal = "documents_disabled" | "registration_disabled" | "not_allowed";

/** Why a host can't connect. */
export type Obstacle = Refusal | "plan_required" | "local_server" | "dpop_required" | "unknown_client";

/** Each kind of app, and why it isn't accepted; undefined if it is. */
export type Acceptance = Record<"knownDocument" | "otherDocument" | "registration", Refusal | undefined>;

/** Returns which kinds of apps can connect to an organization on a paid plan. */
export function acceptanceOf({ CIMD, DYNAMIC_REGISTRATION, allowed }: Conditions): Acceptance {
  const allowsKnown = allowed === "none" ? "not_allowed" : undefined;
  const allowsAny = allowed === "any" ? undefined : "not_allowed";
  return {
    knownDocument: CIMD === "off" ? "documents_disabled" : allowsKnown,
    otherDocument: CIMD === "any" ? allowsAny : "documents_disabled",
    // Those of the hosts and other apps on the user's computer count as known.
    registration: DYNAMIC_REGISTRATION === "off" ? "registration_disabled" : allowsKnown,
  };
}

/** Returns why a host can't connect, or undefined if it can. */
export function obstacleOf({ identity, isHosted }: Host, conditions: Conditions): Obstacle | undefined {
  if (!isPaid(conditions.plan)) return "plan_required";
  if (isHosted && conditions.isLocal) return "local_server";
  // None of the hosts in the list sends proofs; another client may.
  if (identity !== "any" && conditions.requiresDpop) return "dpop_required";
  const { knownDocument, otherDocument, registration } = acceptanceOf(conditions);
  switch (identity) {
    case "document":
      return knownDocument;
    case "registration":
      return registration;
    case "registration or document":
      return registration === "registration_disabled" ? knownDocument : registration;
    case "any":
      if (!registration || !otherDocument) return undefined;
      return [registration, otherDocument].includes("not_allowed") ? "not_allowed" : "unknown_client";
  }
}
