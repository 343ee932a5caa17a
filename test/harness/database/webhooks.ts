import type { Storage } from "../../../adapters/index.ts";
import type { LeasedDelivery, Outcome, Webhook } from "../../../resources/webhooks/types.ts";
import { markVerified } from "../webhooks.ts";
import type { TestStorage } from "./storage.ts";

export async function createWebhooks(
  { createOrganization, createWebhook, database }: TestStorage,
  count = 1,
  { verified = true } = {},
): Promise<{ id: string; webhooks: Webhook[]; webhook: Webhook }> {
  const id = await createOrganization();
  const webhooks: Webhook[] = [];
  while (webhooks.length < count) webhooks.push(await createWebhook(id));
  const ids = webhooks.map((webhook) => webhook.id);
  if (verified) await markVerified(database, ids);
  return { id, webhooks, webhook: webhooks[0] as Webhook };
}

export function settle(
  { deliveries }: Storage,
  leased: LeasedDelivery,
  outcome: Outcome = { status: "succeeded" },
  attempt = { at: 0, status: 204, ms: 1 },
): Promise<unknown> {
  return deliveries.settle(leased, attempt, outcome);
}
