import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { linkFields, OPERATOR } from "../../harness/database/storage.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import type { DeliveryBody, Received } from "../../harness/webhooks.ts";
import { deliveriesOf, until, verify, waitForDelivery } from "../../harness/webhooks.ts";

export const databases = "all";

const { service, receiver, respondWith, subscribe, passQueue } = await startWebhookService();
const { links, organizations, suspensions } = service.storage;

const follow = (slug: string) => apiAt(service.url).get(`/${slug}`);

test.serial("an event on the Free plan is logged, not sent, and can be resent after upgrading", async (t) => {
  const { organization, api, webhook, path, address } = await subscribe(["link.clicked"]);
  const { slug } = await api.createLink();
  await organizations.setPlan(organization.id, "free", OPERATOR);
  t.is((await follow(slug)).status, 302);
  await until(async () => {
    const [delivery] = await service.storage.webhooks.deliveries(organization.id, webhook.id, 1);
    return delivery?.status === "failed" || undefined;
  });
  t.is(receiver.received(path).length, 0);
  const found = await service.storage.webhooks.find(organization.id, webhook.id);
  t.like(found, { enabled: true, disabledReason: null }, "the webhook stays healthy");

  await organizations.setPlan(organization.id, "growth", OPERATOR);
  const [delivery] = (await deliveriesOf(api, webhook)) as [DeliveryBody];
  t.like(delivery, { status: "failed", next_attempt_at: null, type: "link.clicked" });
  const errors = delivery.attempts.map(({ error }) => error);
  t.deepEqual(errors, ["Not sent: webhooks require a paid plan."]);
  await api.send("POST", `${address}/deliveries/${delivery.id}/resend`);
  const [request] = (await receiver.waitFor(path, 1)) as [Received];
  t.is(request.headers["webhook-id"], delivery.id);
  t.like(verify(request, webhook.secret).data, { slug });
  await follow(slug);
  await receiver.waitFor(path, 2);
});

test.serial("nothing is sent for a deleted organization, not even pending retries", async (t) => {
  const { organization, api, webhook, path } = await subscribe(["link.created", "link.clicked"]);
  respondWith(path, 500);
  const { slug } = await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  t.true(await organizations.remove(organization.id, OPERATOR));
  t.is((await follow(slug)).status, 410);
  advanceClock(10_000);
  await passQueue();
  t.is(receiver.received(path).length, 1);
  t.is(await service.storage.webhooks.find(organization.id, webhook.id), undefined);
});

test("the webhooks of a suspended organization receive nothing until it is resumed", async (t) => {
  const { organization, api, webhook, path } = await subscribe();
  await suspensions.suspend(organization.id, null, OPERATOR);
  await links.create(organization.id, OPERATOR, linkFields({ slug: "held-event" }));
  await passQueue();
  t.is(receiver.received(path).length, 0);
  await suspensions.resume(organization.id, OPERATOR);
  await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(receiver.received(path).length, 1);
});
