import type { Knex } from "knex";

/** Lists the verified domains of an organization, which its links can have. */
export async function listLinkDomains(q: Knex, organizationId: string) {
  const rows = await q("domains")
    .where({ organization_id: organizationId })
    .whereNotNull("live_host")
    .select("id", "host", "case_sensitive");
  return rows.map(({ id, host, case_sensitive }) => ({ id, host, caseSensitive: Boolean(case_sensitive) }));
}
