import type { Membership } from "../../adapters/organizations/store.ts";
import type { Suspension } from "../../adapters/organizations/suspension.ts";

export function showMembership({ id, name, plan, role, suspension }: Membership) {
  return { id, name, plan, role, ...(suspension && { suspended: showSuspension(suspension) }) };
}

export function showSuspension({ at, reason }: Suspension) {
  return { at: new Date(at).toISOString(), reason };
}
