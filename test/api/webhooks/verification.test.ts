import test from "ava";
import { type Api, apiAt, isProblem } from "../../harness/clients/api.ts";
import { advanceClock, HOUR_MS } from "../../harness/clock.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import {
  allDeliveriesOf,
  createWebhook,
  deliveriesOf,
  type Received,
  until,
  verify,
  type WebhookBody,
  waitUntilVerified,
} from "../../harness/webhooks.ts";

export const databases = "all";

const { service, receiver, respondWith, createRefused, passQueue, newApi } = await startWebhookService();

const isVerified = async (api: Api, id: string) =>
  (await api.get<WebhookBody>(`/v1/webhooks/${id}`)).body.verified;
const typesOn = (path: string) => receiver.received(path).map(({ body }) => body.type);
const idsIn = (requests: Received[]) => requests.map(({ body }) => body.data.id as string).sort();
const sendTest = (api: Api, id: string) => api.send("POST", `/v1/webhooks/${id}/test`);

async function createAndWait(api: Api, path: string) {
  const webhook = await createRefused(api, receiver.url(path));
  await receiver.waitFor(path, 1);
  return webhook;
}

test.serial("events wait until the endpoint accepts a test event, and are then sent", async (t) => {
  const api = await newApi();
  const { id, secret } = await createAndWait(api, "/late");
  const tag = async () => (await api.get(`/v1/webhooks/${id}`)).headers.get("etag");
  const before = await tag();
  t.false(await isVerified(api, id));
  const links = [await api.createLink(), await api.createLink(), await api.createLink()];
  await passQueue();
  for (const one of await deliveriesOf(api, { id })) t.like(one, { status: "pending" });
  t.true(typesOn("/late").every((type) => type === "webhook.test"));

  respondWith("/late", 200);
  const failed = receiver.received("/late").length;
  t.is((await sendTest(api, id)).status, 202);
  const requests = () => receiver.received("/late").slice(failed);
  const created = () => requests().filter(({ body }) => body.type === "link.created");
  await until(async () => created().length >= 3 || undefined);
  const [first] = requests().map((request) => verify(request, secret));
  t.like(first, { type: "webhook.test", data: { webhook_id: id, verification: true } });
  t.deepEqual(idsIn(created()), links.map((link) => link.id).sort());
  t.true(await isVerified(api, id));
  t.is(await tag(), before, "neither failed attempts nor the verification change it");
});

test.serial("after five attempts, waiting events fail, and a later test verifies the webhook", async (t) => {
  const organization = await service.createOrganization();
  const renew = async () => apiAt(service.url, await service.token(organization));
  let api = await renew();
  const { id } = await createAndWait(api, "/never");
  await api.createLink();
  for (const [index, delay] of [5_000, 5 * 60_000, 30 * 60_000, 2 * HOUR_MS].entries()) {
    await until(async () => {
      const test = (await allDeliveriesOf(api, { id })).at(-1);
      return test?.attempts.length === index + 1 || undefined;
    });
    t.is(typesOn("/never").length, index + 1);
    advanceClock(delay * 1.1);
    // Tokens are valid for an hour.
    api = await renew();
  }
  const failed = await until(async () => {
    const deliveries = await allDeliveriesOf(api, { id });
    return deliveries.every(({ status }) => status === "failed") ? deliveries : undefined;
  });
  t.is(failed.length, 2);
  t.is(failed[1]?.attempts.length, 5);
  t.like(failed[0], { type: "link.created", next_attempt_at: null });
  t.regex(failed[0]?.attempts[0]?.error ?? "", /^Not sent: the endpoint hasn't accepted a test event\./);
  t.is(typesOn("/never").length, 5);

  await api.createLink();
  t.is((await allDeliveriesOf(api, { id })).length, 2, "nothing is stored for it anymore");
  const resend = () => api.send("POST", `/v1/webhooks/${id}/deliveries/${failed[0]?.id}/resend`);
  isProblem(t, await resend(), { status: 409, code: "webhook_unverified" });

  respondWith("/never", 200);
  await sendTest(api, id);
  await waitUntilVerified(api, `/v1/webhooks/${id}`);
  t.is((await resend()).status, 202);
  const last = await api.createLink();
  const requests = await receiver.waitFor("/never", 8);
  t.true(requests.slice(6).some(({ body }) => body.data.id === last.id));
});

test.serial("each call sends at most one test event, and only the last one is retried", async (t) => {
  const api = await newApi();
  const { id } = await createAndWait(api, "/repeated");
  for (let count = 2; count <= 4; count++) {
    await sendTest(api, id);
    await receiver.waitFor("/repeated", count);
  }
  await until(async () => (await allDeliveriesOf(api, { id }))[0]?.attempts[0]);
  advanceClock(5_600);
  await receiver.waitFor("/repeated", 5);
  await passQueue();
  t.is(typesOn("/repeated").length, 5);
});

test.serial(
  "a webhook that a 410 disabled, or that was created disabled, is tested when it is enabled",
  async (t) => {
    const api = await newApi();
    for (const path of ["/gone", "/off"]) receiver.exposeVerification(path);
    respondWith("/gone", 410);
    const gone = `/v1/webhooks/${(await createWebhook(api, receiver.url("/gone"))).id}`;
    await until(async () => !(await api.get<WebhookBody>(gone)).body.enabled || undefined);
    respondWith("/gone", 200);
    const json = { url: receiver.url("/off"), events: ["link.created"], enabled: false };
    const { body } = await api.send<WebhookBody>("POST", "/v1/webhooks", { json });
    t.like(body, { enabled: false, verified: false });
    await passQueue();
    t.deepEqual(typesOn("/off"), []);
    for (const path of [gone, `/v1/webhooks/${body.id}`]) {
      await api.send("PATCH", path, { json: { enabled: true } });
      await waitUntilVerified(api, path);
    }
    t.deepEqual([...typesOn("/gone"), ...typesOn("/off")], Array(3).fill("webhook.test"));
  },
);
