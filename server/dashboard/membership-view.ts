import type { Membership } from "../../adapters/organizations/store.ts";
import type { Suspension } from "../../adapters/organizations/suspension-row.ts";

/** Returns the JSON form of an organization of the user. */
export function showMembership({ suspension, ...membership }: Membership) {
  return { ...membership, ...(suspension && { suspended: showSuspension(suspension) }) };
}

/** Returns the JSON form of a suspension. */
export function showSuspension({ at, reason }: Suspension) {
  return { at: new Date(at).toISOString(), reason };
}
