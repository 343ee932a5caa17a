import type { Knex } from "knex";

/**
 * Lists the domains of an organization that its links have; those that new ones can have are verified. `isLocked`: none is
 * deleted until the transaction ends.
 */
export async function listLinkDomains(
  q: Knex,
  organizationId: string,
  { isVerified = true, isLocked = false } = {},
) {
  const domains = q("domains")
    .where({ organization_id: organizationId })
    .select("id", "host", "case_sensitive");
  if (isVerified) domains.whereNotNull("live_host");
  if (isLocked) domains.forShare();
  const rows = await domains;
  return rows.map(({ id, host, case_sensitive }) => ({ id, host, caseSensitive: Boolean(case_sensitive) }));
}
