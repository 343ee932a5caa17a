import { type ClientPolicy, createClientPolicy } from "../../adapters/oauth/client-policy.ts";
import type { Settings } from "../settings/config.ts";
import { knownDocumentOf } from "./known-clients.ts";
import { createKnownRegistrations } from "./known-registrations.ts";

/** Returns which clients organizations may allow on this server. */
export function clientPolicyOf({ CIMD, DYNAMIC_REGISTRATION }: Settings): ClientPolicy {
  const isKnownRegistration = createKnownRegistrations();
  return createClientPolicy({
    documents: CIMD.accepted,
    known: {
      has: (clientId) =>
        knownDocumentOf(clientId) !== undefined ||
        CIMD.addresses.has(clientId) ||
        isKnownRegistration(clientId),
    },
    registration: DYNAMIC_REGISTRATION !== "off",
  });
}
