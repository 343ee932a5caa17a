import test from "ava";
import { apiAt, isMissing } from "../../harness/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  deliveriesOf,
  delivery,
  type WebhookBody,
  type WebhookPage,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const newcomer = async () => apiAt(service.url, await service.token(await service.createOrganization()));
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
  test(`sec 91: ${call}${json ? ` of ${JSON.stringify(json)}` : ""} is 404 for a webhook of others, as for none`, async (t) => {
    const mine = `/strange-${index}`;
    const [api, stranger] = [await newcomer(), await newcomer()];
    const { secret, ...made } = await createWebhook(stranger, receiver.url(mine), ["webhook.test"]);
    await stranger.send("POST", `/v1/webhooks/${made.id}/test`);
    const told = await delivery(stranger, made, ({ status }) => status === "succeeded");
    const count = receiver.received(mine).length;
    const replies = [];
    for (const id of [made.id, UNKNOWN, "x", "%00", "whk_"]) {
      const reply = await api.send(
        method,
        `/v1/webhooks/${id}${path.replace(/evt_\w+/, told.id)}`,
        json && { json },
      );
      isMissing(t, reply);
      replies.push(reply.body.detail);
    }
    t.is(new Set(replies).size, 1);
    t.deepEqual((await stranger.get<WebhookBody>(`/v1/webhooks/${made.id}`)).body, made);
    t.deepEqual(await deliveriesOf(stranger, made), [told]);
    t.is(receiver.received(mine).length, count);
  });
}

test("sec 91: a list shows no webhook of others", async (t) => {
  const [api, stranger] = [await newcomer(), await newcomer()];
  const { id } = await createWebhook(api, "https://example.com/hook");
  await createWebhook(stranger, "https://example.com/hook");
  t.deepEqual(
    (await api.get<WebhookPage>("/v1/webhooks?limit=100")).body.data.map((one) => one.id),
    [id],
  );
});
