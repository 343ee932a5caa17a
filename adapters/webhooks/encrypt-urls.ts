import type { Encryption } from "../crypto/encryption.ts";
import { sha256 } from "../crypto/hash.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { createWebhookRows } from "./row.ts";

const BATCH = 200;

/**
 * Encrypts the URLs that the previous version stored readably, and updates what it doesn't: their hosts and hashes. A URL
 * that changes meanwhile is read again.
 */
export async function encryptUrls({ knex }: Database, encryption: Encryption): Promise<void> {
  const { toColumns } = createWebhookRows(encryption);
  for (;;) {
    const rows = await knex("webhooks")
      .where("url", "like", "http%")
      .limit(BATCH)
      .select("id", "organization_id", "url");
    if (rows.length === 0) return;
    for (const { id, organization_id, url } of rows) {
      const columns = toColumns({ id, organization_id }, { url });
      const update = (changed: typeof columns) => knex("webhooks").where({ id, url }).update(changed);
      try {
        await update(columns);
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        // The previous version allowed a URL twice.
        await update({ ...columns, url_hash: sha256(`${columns.url_hash} ${id}`) });
      }
    }
  }
}
