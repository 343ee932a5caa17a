import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, waitForDelivery } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const { links, suspensions } = service.storage;
test.after.always(() => Promise.all([service.close(), receiver.close()]));

async function newOrganization(path: string) {
  const organization = await service.createOrganization();
  const api = apiAt(service.url, await service.token(organization));
  return { organization, api, webhook: await createWebhook(api, receiver.url(path)) };
}

test("the webhooks of a suspended organization receive nothing until it is resumed", async (t) => {
  const { organization, api, webhook } = await newOrganization("/suspended");
  await suspensions.suspend(organization.id, null, OPERATOR);
  const fields = {
    slug: "held-event",
    url: "https://example.com/",
    title: null,
    tags: [],
    externalId: null,
    metadata: {},
    archived: false,
    expiresAt: null,
    maxClicks: null,
    redirectType: 302 as const,
  };
  await links.create(organization.id, OPERATOR, fields);
  // A delivery to another organization shows that the queue was polled.
  const other = await newOrganization("/other");
  await other.api.createLink();
  await waitForDelivery(other.api, other.webhook, ({ status }) => status === "succeeded");
  t.is(receiver.received("/suspended").length, 0);
  await suspensions.resume(organization.id, OPERATOR);
  await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(receiver.received("/suspended").length, 1);
});
