import type { Knex } from "knex";
import { lockOrganization, type Organization } from "../organizations/store.ts";

/** Locks a user's organizations in id order, before any other row, so two transactions can't wait for each other. */
export async function lockOrganizationsOf(
  trx: Knex.Transaction,
  userId: string,
): Promise<Pick<Organization, "id" | "name">[]> {
  const organizations: Pick<Organization, "id" | "name">[] = await trx("memberships as m")
    .join("organizations as o", "o.id", "m.organization_id")
    .where("m.user_id", userId)
    .orderBy("o.id")
    .select("o.id", "o.name");
  for (const { id } of organizations) await lockOrganization(trx, id);
  return organizations;
}
