import type { Knex } from "knex";

/**
 * Keeps the pending deliveries of a suspended organization from becoming due. Those that are being attempted, and those of
 * later events, are postponed when they are leased. Part of the caller's transaction.
 */
export async function holdDeliveries(trx: Knex.Transaction, organizationId: string): Promise<void> {
  await pendingOf(trx, organizationId).whereNull("leased_by").update({ due_at: null });
}

/** Makes the pending deliveries of an organization due now. Part of the caller's transaction. */
export async function releaseDeliveries(trx: Knex.Transaction, organizationId: string): Promise<void> {
  await pendingOf(trx, organizationId).whereNull("leased_by").update({ due_at: Date.now() });
}

function pendingOf(trx: Knex.Transaction, organizationId: string) {
  const webhooks = trx("webhooks").where({ organization_id: organizationId }).select("id");
  return trx("deliveries").whereIn("webhook_id", webhooks).where({ status: "pending" });
}
