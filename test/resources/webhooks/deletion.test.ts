import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  type WebhookPage,
  waitForDelivery,
} from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

test("a deleted webhook is gone with its delivery log and receives no more events", async (t) => {
  const api = await createApi();
  const webhook = await createWebhook(api, receiver.url("/deleted"));
  const other = await createWebhook(api, receiver.url("/kept"));
  await api.createLink();
  await receiver.waitFor("/deleted", 1);
  const reply = await api.send("DELETE", `/v1/webhooks/${webhook.id}`);
  t.is(reply.status, 204);
  t.is(reply.text, "");
  for (const path of ["", "/deliveries"]) isMissing(t, await api.get(`/v1/webhooks/${webhook.id}${path}`));
  isMissing(t, await api.send("DELETE", `/v1/webhooks/${webhook.id}`));
  await api.createLink();
  await receiver.waitFor("/kept", 2);
  t.is(receiver.received("/deleted").length, 1);
  t.is((await deliveriesOf(api, other)).length, 2);
});

test("deleting a webhook during an attempt leaves nothing behind", async (t) => {
  const api = await createApi();
  const held = Promise.withResolvers<void>();
  receiver.respond("/in-flight", (response) => void held.promise.then(() => response.writeHead(500).end()));
  const webhook = await createWebhook(api, receiver.url("/in-flight"));
  await api.createLink();
  await receiver.waitFor("/in-flight", 1);
  t.is((await api.send("DELETE", `/v1/webhooks/${webhook.id}`)).status, 204);
  held.resolve();
  const other = await createWebhook(api, receiver.url("/after"));
  await api.createLink();
  await waitForDelivery(api, other, ({ status }) => status === "succeeded");
  t.deepEqual(
    (await api.get<WebhookPage>("/v1/webhooks")).body.data.map(({ id }) => id),
    [other.id],
  );
});

test("a disabled webhook receives no events, and its pending retries are not sent", async (t) => {
  const api = await createApi();
  receiver.respond("/off", (response) => response.writeHead(500).end());
  const webhook = await createWebhook(api, receiver.url("/off"));
  await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: false } });
  await api.createLink();
  const [delivery, ...others] = await deliveriesOf(api, webhook);
  t.deepEqual(others, [], "later events are not for this webhook");
  for (const path of ["test", `deliveries/${delivery?.id}/resend`]) {
    const reply = await api.send("POST", `/v1/webhooks/${webhook.id}/${path}`);
    t.is(reply.status, 409, path);
    isProblem(t, reply, { status: 409, code: "webhook_disabled" });
  }
  const ended = await waitForDelivery(api, webhook, ({ status }) => status === "failed");
  t.is(ended.attempts.at(-1)?.error, "Not sent: the webhook is disabled.");
  t.is(receiver.received("/off").length, 1);
});

test("an unknown delivery or one of another webhook can't be resent", async (t) => {
  const api = await createApi();
  const one = await createWebhook(api, receiver.url("/resend-one"), ["webhook.test"]);
  const other = await createWebhook(api, receiver.url("/resend-other"), ["webhook.test"]);
  const { body } = await api.send<DeliveryBody>("POST", `/v1/webhooks/${one.id}/test`);
  await waitForDelivery(api, one, ({ status }) => status === "succeeded");
  for (const id of [body.id, "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"]) {
    isMissing(t, await api.send("POST", `/v1/webhooks/${other.id}/deliveries/${id}/resend`));
  }
  t.is(receiver.received("/resend-other").length, 0);
  t.is(receiver.received("/resend-one").length, 1);
});

test("resending a delivery in flight does not start a second attempt", async (t) => {
  const api = await createApi();
  const held = Promise.withResolvers<void>();
  receiver.respond("/held", (response) => void held.promise.then(() => response.writeHead(204).end()));
  const webhook = await createWebhook(api, receiver.url("/held"), ["webhook.test"]);
  const { body } = await api.send<DeliveryBody>("POST", `/v1/webhooks/${webhook.id}/test`);
  await receiver.waitFor("/held", 1);
  const again = await api.send("POST", `/v1/webhooks/${webhook.id}/deliveries/${body.id}/resend`);
  t.is(again.status, 202);
  t.like(again.body, { status: "pending" });
  held.resolve();
  const delivery = await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(delivery.attempts.length, 1);
  t.is(receiver.received("/held").length, 1);
});
