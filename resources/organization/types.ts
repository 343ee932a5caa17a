import type { Plan } from "../plans.ts";

/** Reads organizations; the resources need nothing more of them. */
export type OrganizationReader = {
  find(id: string): Promise<{ id: string; name: string; plan: Plan } | undefined>;
};
