import type { AllowedClients } from "../../../adapters/oauth/client-policy.ts";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { Settings } from "../../settings/config.ts";
import type { Host } from "./hosts.ts";

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
    knownDocument: CIMD.accepted === "off" ? "documents_disabled" : allowsKnown,
    otherDocument: CIMD.accepted === "any" ? allowsAny : "documents_disabled",
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

/** Returns the sentences that say why a host can't connect, and what would change that; backticks mark code. */
export function explain(obstacle: Obstacle, organization: string): string {
  return SENTENCES[obstacle].replace("{organization}", () => organization);
}

const SENTENCES: Record<Obstacle, string> = {
  plan_required: "Connecting AI clients requires the Growth or Premium plan.",
  local_server:
    "This client connects from its vendor’s servers, which can’t reach a server on localhost. The server needs a public https address, in its setting `BASE_URL`.",
  dpop_required:
    "{organization} requires DPoP, which this client isn’t known to support. An owner can change that under API access.",
  documents_disabled:
    "This client identifies itself by a metadata document, which this server doesn’t accept. The server’s operator can change that with the setting `CIMD`.",
  not_allowed: "{organization} doesn’t allow this client. An owner or admin can change that under Apps.",
  registration_disabled:
    "This client registers itself with the server, and registration is off. The server’s operator can turn it on with the setting `DYNAMIC_REGISTRATION=stateless`.",
  unknown_client:
    "This server accepts known AI clients only. The server’s operator can add the metadata document of another one to the setting `CIMD`, or let clients register themselves with `DYNAMIC_REGISTRATION=stateless`.",
};
