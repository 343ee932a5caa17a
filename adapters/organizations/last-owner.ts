import type { Knex } from "knex";

export async function isLastOwner(
  trx: Knex.Transaction,
  organizationId: string,
  userId: string,
): Promise<boolean> {
  const owners = await trx("memberships")
    .where({ organization_id: organizationId, role: "owner" })
    .pluck("user_id");
  return owners.length === 1 && owners[0] === userId;
}
