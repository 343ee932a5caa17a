import type { Knex } from "knex";

/**
 * Locks the organization's client until the caller's transaction ends and returns its id. To avoid deadlocks, every
 * transaction locks in the same order: the organization (`lockOrganization`), its client, then secrets and grants.
 */
export async function lockClient(trx: Knex, organizationId: string): Promise<string | undefined> {
  const client = () => trx("clients").where({ organization_id: organizationId });
  if (!(await client().update({ updated_at: Date.now() }))) return undefined;
  return (await client().first("id"))?.id;
}
