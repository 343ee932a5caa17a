import type { Knex } from "knex";
import type { ClientRow } from "./database/tables/oauth.ts";

// To avoid deadlocks, all lock in this order: organizations by id, then a client, users, secrets and grants.

export async function lockOrganization(trx: Knex.Transaction, id: string): Promise<boolean> {
  const organization = trx("organizations").where({ id }).whereNull("deleted_at");
  return (await organization.update({ updated_at: Date.now() })) > 0;
}

export async function lockOrganizationsOf(
  trx: Knex.Transaction,
  userId: string,
): Promise<{ id: string; name: string }[]> {
  const organizations: { id: string; name: string }[] = await trx("memberships as m")
    .join("organizations as o", "o.id", "m.organization_id")
    .where("m.user_id", userId)
    .orderBy("o.id")
    .select("o.id", "o.name");
  for (const { id } of organizations) await lockOrganization(trx, id);
  return organizations;
}

export async function lockClient(trx: Knex, organization_id: string): Promise<ClientRow | undefined> {
  const client = () => trx("clients").where({ organization_id });
  return (await client().update({ updated_at: Date.now() })) ? client().first() : undefined;
}

export async function lockUser(trx: Knex.Transaction, id: string): Promise<void> {
  await trx("users").where({ id }).forUpdate().first("id");
}
