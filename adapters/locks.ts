import type { Knex } from "knex";
import type { UserRow } from "./database/tables/accounts.ts";
import type { ClientRow } from "./database/tables/oauth.ts";
import type { OrganizationRow } from "./database/tables/organizations.ts";

// To avoid deadlocks, all lock in this order: organizations by id, then a client, users, secrets and grants. Each lock
// changes its row, because the nodes of a Galera cluster notice only changes.

/** Returns the organization as it was locked; undefined if there is none. */
export async function lockOrganization(
  trx: Knex.Transaction,
  id: string,
): Promise<OrganizationRow | undefined> {
  const organization = () => trx("organizations").where({ id }).whereNull("deleted_at");
  return (await organization().update({ updated_at: Date.now() })) ? organization().first() : undefined;
}

export async function lockOrganizationsOf(
  trx: Knex.Transaction,
  user_id: string,
): Promise<OrganizationRow[]> {
  const ids = await trx("memberships").where({ user_id }).orderBy("organization_id").pluck("organization_id");
  const organizations: OrganizationRow[] = [];
  for (const id of ids) {
    const organization = await lockOrganization(trx, id);
    if (organization) organizations.push(organization);
  }
  return organizations;
}

export async function lockClient(trx: Knex, organization_id: string): Promise<ClientRow | undefined> {
  const client = () => trx("clients").where({ organization_id });
  return (await client().update({ updated_at: Date.now() })) ? client().first() : undefined;
}

export async function lockUser(trx: Knex.Transaction, id: string): Promise<UserRow | undefined> {
  const user = () => trx("users").where({ id });
  return (await user().update({ locked_at: Date.now() })) ? user().first() : undefined;
}
