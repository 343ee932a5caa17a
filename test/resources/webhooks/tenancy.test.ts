import test from "ava";
import { apiAt, isMissing } from "../../harness/clients/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  deliveriesOf,
  type WebhookBody,
  type WebhookPage,
  waitForDelivery,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const UNKNOWN = "whk_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const CALLS: [method: string, path: string, json?: object][] = [
  ["GET", ""],
  ["PATCH", "", { enabled: false }],
  ["PATCH", "", {}],
  ["DELETE", ""],
  ["POST", "/rotate-secret"],
  ["POST", "/test"],
  ["GET", "/deliveries"],
  ["POST", "/deliveries/evt_01ARZ3NDEKTSV4RRFFQ69G5FAV/resend"],
];
for (const [index, [method, path, json]] of CALLS.entries()) {
  const call = `${method} /v1/webhooks/{id}${path}`.replace(/evt_\w+/, "{delivery_id}");
  test(`${call}${json ? ` of ${JSON.stringify(json)}` : ""} returns the same 404 for a webhook of another organization and an unknown one`, async (t) => {
    const mine = `/strange-${index}`;
    const [api, stranger] = [await createApi(), await createApi()];
    const { secret, ...created } = await createWebhook(stranger, receiver.url(mine), ["webhook.test"]);
    await stranger.send("POST", `/v1/webhooks/${created.id}/test`);
    const delivery = await waitForDelivery(stranger, created, ({ status }) => status === "succeeded");
    const count = receiver.received(mine).length;
    const replies = [];
    for (const id of [created.id, UNKNOWN, "x", "%00", "whk_"]) {
      const reply = await api.send(
        method,
        `/v1/webhooks/${id}${path.replace(/evt_\w+/, delivery.id)}`,
        json && { json },
      );
      isMissing(t, reply);
      replies.push(reply.body.detail);
    }
    t.is(new Set(replies).size, 1);
    t.deepEqual((await stranger.get<WebhookBody>(`/v1/webhooks/${created.id}`)).body, created);
    t.deepEqual(await deliveriesOf(stranger, created), [delivery]);
    t.is(receiver.received(mine).length, count);
  });
}

test("a list contains no webhooks of another organization", async (t) => {
  const [api, stranger] = [await createApi(), await createApi()];
  const { id } = await createWebhook(api, "https://example.com/hook");
  await createWebhook(stranger, "https://example.com/hook");
  t.deepEqual(
    (await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.map((one) => one.id),
    [id],
  );
});
