import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  until,
  waitForDelivery,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const { organizations } = service.storage;
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const NOT_IN_PLAN = "Not sent: webhooks require a paid plan.";

async function newOrganization() {
  const organization = await service.createOrganization();
  const api = apiAt(service.url, await service.token(organization));
  const moveTo = (plan: "free" | "growth") => organizations.setPlan(organization.id, plan, OPERATOR);
  return { organization, api, moveTo };
}

/** Follows a short link, which works on every plan. */
const follow = (slug: string) => apiAt(service.url).get(`/${slug}`);

/** Waits until the queue has been polled, by a delivery to another organization. */
async function waitForPoll() {
  const { api } = await newOrganization();
  const webhook = await createWebhook(api, receiver.url("/canary"));
  await api.createLink();
  await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
}

const calls: [method: string, path: string, json?: object][] = [
  ["GET", ""],
  ["POST", "", { url: "https://example.com/", events: ["link.created"] }],
  ["GET", "/whk_x"],
  ["PATCH", "/whk_x", { enabled: false }],
  ["DELETE", "/whk_x"],
  ["POST", "/whk_x/rotate-secret"],
  ["POST", "/whk_x/test"],
  ["GET", "/whk_x/deliveries"],
  ["POST", "/whk_x/deliveries/evt_x/resend"],
];
for (const [method, path, json] of calls) {
  test.serial(`${method} /v1/webhooks${path} is rejected on the Free plan`, async (t) => {
    const { api, moveTo } = await newOrganization();
    await moveTo("free");
    const reply = await api.send(method, `/v1/webhooks${path}`, json && { json });
    isProblem(t, reply, { status: 403, code: "plan_required" });
  });
}

test.serial(
  "an event on the Free plan is logged but not sent, and can be resent after an upgrade",
  async (t) => {
    const { organization, api, moveTo } = await newOrganization();
    const webhook = await createWebhook(api, receiver.url("/free"), ["link.clicked"]);
    const { slug } = await api.createLink();
    await moveTo("free");
    t.is((await follow(slug)).status, 302);
    await until(async () => {
      const [delivery] = await service.storage.webhooks.deliveries(organization.id, webhook.id, 1);
      return delivery?.status === "failed" || undefined;
    });
    t.is(receiver.received("/free").length, 0);

    await moveTo("growth");
    const [delivery] = (await deliveriesOf(api, webhook)) as [DeliveryBody];
    t.like(delivery, { status: "failed", next_attempt_at: null, type: "link.clicked" });
    t.deepEqual(
      delivery.attempts.map(({ error }) => error),
      [NOT_IN_PLAN],
    );
    await api.send("POST", `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}/resend`);
    const [request] = (await receiver.waitFor("/free", 1)) as [Received];
    t.is(request.headers["webhook-id"], delivery.id);
    t.like(verify(request, webhook.secret).data, { slug });
    await follow(slug);
    await receiver.waitFor("/free", 2);
  },
);

test.serial("pending retries are not sent on the Free plan", async (t) => {
  const { organization, api, moveTo } = await newOrganization();
  receiver.respond("/retry", (response) => response.writeHead(500).end());
  const webhook = await createWebhook(api, receiver.url("/retry"));
  await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  await moveTo("free");
  advanceClock(10_000);
  const delivery = await until(async () => {
    const [newest] = await service.storage.webhooks.deliveries(organization.id, webhook.id, 1);
    return newest?.status === "failed" ? newest : undefined;
  });
  t.is(delivery.attempts.at(-1)?.error, NOT_IN_PLAN);
  t.is(receiver.received("/retry").length, 1);
  const { enabled, disabledReason } =
    (await service.storage.webhooks.find(organization.id, webhook.id)) ?? {};
  t.deepEqual([enabled, disabledReason], [true, null], "the webhook stays healthy");
});

test.serial("nothing is sent for a deleted organization, not even pending retries", async (t) => {
  const { organization, api } = await newOrganization();
  receiver.respond("/departed", (response) => response.writeHead(500).end());
  const webhook = await createWebhook(api, receiver.url("/departed"), ["link.created", "link.clicked"]);
  const { slug } = await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  t.true(await organizations.remove(organization.id, OPERATOR));
  t.is((await follow(slug)).status, 410);
  advanceClock(10_000);
  await waitForPoll();
  t.is(receiver.received("/departed").length, 1);
  t.is(await service.storage.webhooks.find(organization.id, webhook.id), undefined);
});
