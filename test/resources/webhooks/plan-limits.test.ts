import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { connectMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce, linkFields } from "../../harness/database/storage.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  type NewWebhookBody,
  uniqueUrl,
  until,
  type WebhookPage,
  waitForDelivery,
} from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });

test.after.always(() => Promise.all([service.close(), receiver.close()]));

const { organizations } = service.storage;

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

const LIMIT = 20;
const newWebhook = () => ({ json: { url: uniqueUrl(), events: ["link.created"] } });

async function newCaller(plan: "growth" | "premium" = "growth") {
  const token = await service.token(await service.createOrganization(undefined, plan));
  return { token, api: apiAt(service.url, token) };
}

for (const plan of ["growth", "premium"] as const) {
  test.serial(
    `an organization on ${plan} can create ${LIMIT} webhooks, the limit that the API reports`,
    async (t) => {
      const { api } = await newCaller(plan);
      for (let created = 0; created < LIMIT; created++) await createWebhook(api, uniqueUrl());
      const rejected = await api.send("POST", "/v1/webhooks", newWebhook());
      isProblem(t, rejected, { status: 409, code: "webhook_limit" });
      t.regex(rejected.body.detail, /20 webhooks/);
      const { body } = await api.get<{ limits: { webhooks: number } }>("/v1/organization");
      t.is(body.limits.webhooks, LIMIT);
      t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
    },
  );
}

test.serial("deleting a webhook frees capacity for one, disabling does not", async (t) => {
  const { api } = await newCaller();
  const created = await atOnce(LIMIT, () => createWebhook(api, uniqueUrl()));
  const [first, second] = created as [NewWebhookBody, NewWebhookBody];
  await api.send("PATCH", `/v1/webhooks/${first.id}`, { json: { enabled: false } });
  t.is((await api.send("POST", "/v1/webhooks", newWebhook())).status, 409);
  await api.send("DELETE", `/v1/webhooks/${second.id}`);
  t.is((await api.send("POST", "/v1/webhooks", newWebhook())).status, 201);
  t.is((await api.send("POST", "/v1/webhooks", newWebhook())).status, 409);
});

test.serial(`of 50 concurrent creations over REST and MCP, exactly ${LIMIT} succeed`, async (t) => {
  for (let round = 0; round < 3; round++) {
    const { api, token } = await newCaller();
    const agent = await connectMcp(`${service.url}/mcp`, token);
    const codes = await atOnce(50, async (index) => {
      if (index % 2 === 0) {
        const { status, body } = await api.send("POST", "/v1/webhooks", newWebhook());
        return status === 201 ? "created" : body.code;
      }
      const result = await agent.callTool({ name: "create_webhook", arguments: newWebhook().json });
      return refusalOf(result)?.code ?? "created";
    });
    await agent.close();
    t.is(codes.filter((code) => code === "created").length, LIMIT);
    t.is(codes.filter((code) => code === "webhook_limit").length, 50 - LIMIT);
    t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
  }
});

test.serial("the limits of two organizations are independent", async (t) => {
  const [one, other] = [await newCaller(), await newCaller()];
  const answers = await atOnce(60, (index) =>
    (index % 2 ? one : other).api.send("POST", "/v1/webhooks", newWebhook()),
  );
  for (const [turn, { api }] of [other, one].entries()) {
    const mine = answers.filter((_, index) => index % 2 === turn);
    t.is(mine.filter(({ status }) => status === 201).length, LIMIT);
    t.is((await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, LIMIT);
  }
});

const { links, suspensions } = service.storage;

async function newSubscriber(path: string) {
  const organization = await service.createOrganization();
  const api = apiAt(service.url, await service.token(organization));
  return { organization, api, webhook: await createWebhook(api, receiver.url(path)) };
}

test("the webhooks of a suspended organization receive nothing until it is resumed", async (t) => {
  const { organization, api, webhook } = await newSubscriber("/suspended");
  await suspensions.suspend(organization.id, null, OPERATOR);
  await links.create(organization.id, OPERATOR, linkFields({ slug: "held-event" }));
  // A delivery to another organization shows that the queue was polled.
  const other = await newSubscriber("/other");
  await other.api.createLink();
  await waitForDelivery(other.api, other.webhook, ({ status }) => status === "succeeded");
  t.is(receiver.received("/suspended").length, 0);
  await suspensions.resume(organization.id, OPERATOR);
  await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(receiver.received("/suspended").length, 1);
});
