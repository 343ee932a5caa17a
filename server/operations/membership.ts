import { z } from "zod";
import type { Membership } from "../../adapters/organizations/store.ts";
import type { Suspension } from "../../adapters/organizations/suspension.ts";
import { ROLES } from "../../resources/access/scopes.ts";
import { PLANS } from "../../resources/plans.ts";
import { timestamp } from "./schemas.ts";

export const membershipSchema = z.object({
  id: z.string(),
  name: z.string(),
  plan: z.enum(PLANS),
  role: z.enum(ROLES),
  suspended: z
    .object({ at: timestamp, reason: z.string().nullable() })
    .optional()
    .describe("Since when and why the operator suspended the organization. Absent if it isn't suspended."),
});

export function showMembership({ id, name, plan, role, suspension }: Membership) {
  return { id, name, plan, role, ...(suspension && { suspended: showSuspension(suspension) }) };
}

export function showSuspension({ at, reason }: Suspension) {
  return { at: new Date(at).toISOString(), reason };
}
