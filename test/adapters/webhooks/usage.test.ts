import test from "ava";
import { OPERATOR, SYSTEM } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { LeaseLimits, Webhook } from "../../../resources/webhooks/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { markVerified } from "../../harness/webhooks.ts";

// No dispatcher runs here: the tests lease deliveries as processes do.
const { first, database, close } = await createTestStorage();
test.after.always(() => close());

const LIMITS: LeaseLimits = {
  max: 100,
  perWebhook: 100,
  perHost: 100,
  perOrganization: 100,
  failing: { max: 100, perWebhook: 100, perHost: 100, perOrganization: 100 },
  inFlight: new Map(),
  slow: new Set(),
  limitsOf: () => ({ ...limitsOf("growth"), deliveries_per_day: 2 }),
  actor: SYSTEM,
};
const HOLD_MS = 5 * 60_000;
let count = 0;

async function newWebhook() {
  const { organization } = await first.organizations.create("Usage", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["link.created" as const], enabled: true };
  const webhook = await first.webhooks.create(
    organization.id,
    OPERATOR,
    fields,
    newWebhookSecret(),
    limitsOf,
  );
  await markVerified(database, [(webhook as Webhook).id]);
  return webhook as Webhook;
}

const createLink = (organizationId: string) =>
  first.links.create(organizationId, OPERATOR, linkFields({ slug: `usage-${++count}` }));
const today = ({ organizationId }: Webhook) => first.webhooks.countDeliveriesToday(organizationId);

test.serial("deliveries of a suspended organization count toward the quota when they are sent", async (t) => {
  const webhook = await newWebhook();
  const { organizationId } = webhook;
  await first.suspensions.suspend(organizationId, null, OPERATOR);
  await createLink(organizationId);
  await createLink(organizationId);
  for (let round = 0; round < 3; round++) {
    const leased = await first.deliveries.lease(LIMITS);
    for (const one of leased) await first.deliveries.postpone(one, Date.now() + HOLD_MS);
    t.deepEqual(
      leased.map(({ suspended }) => suspended),
      [true, true],
    );
    t.is(await today(webhook), 0);
    advanceClock(HOLD_MS);
  }
  await first.suspensions.resume(organizationId, OPERATOR);
  t.is((await first.deliveries.lease(LIMITS)).length, 2);
  t.is(await today(webhook), 2);
});
