import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { LEASE_LIMITS, markVerified } from "../../harness/webhooks.ts";

export const databases = "all";

/** Creates an organization with a verified webhook. */
async function createWebhook(t: ExecutionContext) {
  const { first, database, close } = await createTestStorage();
  t.teardown(close);
  const { organization } = await first.organizations.create("Busy", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["link.created" as const], enabled: true };
  const created = await first.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret());
  const { id } = created as Webhook;
  await markVerified(database, [id]);
  return { first, database, organization, id };
}

test("the last success is stored once a minute while deliveries succeed", async (t) => {
  const { first, organization, id } = await createWebhook(t);
  const deliver = async (slug: string) => {
    await first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    for (const leased of await first.deliveries.lease(LEASE_LIMITS))
      await first.deliveries.settle(leased, { at: Date.now(), status: 204, ms: 1 }, { status: "succeeded" });
    return (await first.webhooks.find(organization.id, id))?.lastSuccessAt ?? 0;
  };
  const one = await deliver("success-1");
  t.true(one > 0);
  advanceClock(30_000);
  t.is(await deliver("success-2"), one);
  advanceClock(31_000);
  t.true((await deliver("success-3")) >= one + 61_000);
});

test("a resend has a limit, and the rest is counted", async (t) => {
  const { first, database, organization, id } = await createWebhook(t);
  for (let count = 0; count < 12; count++)
    await first.links.create(organization.id, OPERATOR, linkFields({ slug: `lost-${count}` }));
  await database.knex("deliveries").update({ status: "failed", due_at: null });
  t.is(await first.webhooks.countFailed(organization.id, id, 5), 5);
  t.is(await first.webhooks.resendFailed(organization.id, id, 5), 5);
  t.is(await first.webhooks.countFailed(organization.id, id, 100), 7);
  t.is(await first.webhooks.resendFailed("org_other", id, 100), 0);
  t.is(await first.webhooks.countFailed("org_other", id, 100), 0);
  t.is((await first.deliveries.lease(LEASE_LIMITS)).length, 5);
});
