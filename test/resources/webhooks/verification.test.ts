import type { ServerResponse } from "node:http";
import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  allDeliveriesOf,
  createWebhook,
  deliveriesOf,
  until,
  type WebhookBody,
} from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1", TRUST_PROXY: "1" });
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const visitor = apiAt(service.url);
type Api = ReturnType<typeof apiAt>;
test.after.always(() => Promise.all([service.close(), receiver.close()]));

const HOUR_MS = 60 * 60 * 1000;
const refuse = (response: ServerResponse) => response.writeHead(500).end();
const accept = (response: ServerResponse) => response.writeHead(200).end();
const isVerified = async (api: Api, id: string) =>
  (await api.get<WebhookBody>(`/v1/webhooks/${id}`)).body.verified;
const typesOn = (path: string) => receiver.received(path).map(({ body }) => body.type);
const sendTest = (api: Api, id: string) => api.send("POST", `/v1/webhooks/${id}/test`);

/** Creates a webhook whose endpoint rejects its test event, and waits for that. */
async function createRefused(api: Api, path: string, events?: string[]) {
  receiver.exposeVerification(path);
  receiver.respond(path, refuse);
  const webhook = await createWebhook(api, receiver.url(path), events);
  await receiver.waitFor(path, 1);
  return webhook;
}

/** Waits until an event of another organization is delivered, so everything that was due before is. */
async function passQueue(t: { is(actual: number, expected: number): void }, path: string) {
  const api = await createApi();
  await createWebhook(api, receiver.url(path));
  await api.createLink();
  t.is((await receiver.waitFor(path, 1)).length, 1);
}

test.serial("300 clicks send nothing to endpoints that never accepted a test event", async (t) => {
  const api = await createApi();
  const paths = Array.from({ length: 10 }, (_, index) => `/victim-${index}`);
  for (const path of paths) await createRefused(api, path, ["link.created", "link.clicked"]);
  const links = await atOnce(30, () => api.createLink());
  await atOnce(300, (index) => visitor.get(`/${links[index % 30]?.slug}`));
  const webhooks = (await api.get<{ data: WebhookBody[] }>("/v1/webhooks?limit=100")).body.data;
  for (const webhook of webhooks) {
    await until(async () => {
      const all = await deliveriesOf(api, webhook);
      const deliveries = all.filter(({ type }) => type !== "webhook.test");
      return (
        (deliveries.length >= 60 && deliveries.every((one) => one.next_attempt_at === null)) || undefined
      );
    });
  }
  await passQueue(t, "/bystander");
  for (const path of paths) {
    t.deepEqual(new Set(typesOn(path)), new Set(["webhook.test"]));
    t.true(receiver.received(path).length <= 2, "the first attempt, and the one after 5 s");
  }
});

test.serial("neither failed attempts nor the verification of a webhook change its ETag", async (t) => {
  const api = await createApi();
  const { id } = await createRefused(api, "/tagged");
  const path = `/v1/webhooks/${id}`;
  const etag = (await api.get(path)).headers.get("etag") as string;
  receiver.respond("/tagged", accept);
  await sendTest(api, id);
  await until(async () => (await isVerified(api, id)) || undefined);
  t.is((await api.get(path)).headers.get("etag"), etag);
  const changes = { json: { events: ["link.deleted"] }, headers: { "if-match": etag } };
  t.is((await api.send("PATCH", path, changes)).status, 200);
});

test.serial("events wait until the endpoint accepts a test event, and are then sent", async (t) => {
  const api = await createApi();
  const { id, secret } = await createRefused(api, "/late");
  t.false(await isVerified(api, id));
  const links = [await api.createLink(), await api.createLink(), await api.createLink()];
  await passQueue(t, "/before-late");
  for (const one of await deliveriesOf(api, { id })) t.like(one, { status: "pending" });
  t.true(typesOn("/late").every((type) => type === "webhook.test"));

  receiver.respond("/late", accept);
  const before = receiver.received("/late").length;
  t.is((await sendTest(api, id)).status, 202);
  const requests = () => receiver.received("/late").slice(before);
  const created = () => requests().filter(({ body }) => body.type === "link.created");
  await until(async () => created().length >= 3 || undefined);
  const [first] = requests().map((request) => verify(request, secret));
  t.like(first, { type: "webhook.test", data: { webhook_id: id, verification: true } });
  t.deepEqual(
    created()
      .map(({ body }) => body.data.id)
      .sort(),
    links.map((link) => link.id).sort(),
  );
  t.true(await isVerified(api, id));
});

test.serial("a new URL is verified before it gets any event, also those of the former URL", async (t) => {
  const api = await createApi();
  receiver.respond("/former", refuse);
  const { id } = await createWebhook(api, receiver.url("/former"));
  const link = await api.createLink();
  await receiver.waitFor("/former", 1);
  const change = (json: object) => api.send<WebhookBody>("PATCH", `/v1/webhooks/${id}`, { json });
  t.true(
    (await change({ url: receiver.url("/former"), events: ["link.created", "link.deleted"] })).body.verified,
  );

  receiver.exposeVerification("/former?new");
  receiver.respond("/former?new", refuse);
  t.false((await change({ url: receiver.url("/former?new") })).body.verified);
  await receiver.waitFor("/former?new", 1);
  const later = await api.createLink();
  advanceClock(5_600);
  await receiver.waitFor("/former?new", 2);
  await passQueue(t, "/before-former");
  t.deepEqual(new Set(typesOn("/former?new")), new Set(["webhook.test"]));

  receiver.respond("/former?new", accept);
  await sendTest(api, id);
  const sent = () => receiver.received("/former?new").filter(({ body }) => body.type === "link.created");
  await until(async () => sent().length >= 2 || undefined);
  t.deepEqual(
    sent()
      .map(({ body }) => body.data.id)
      .sort(),
    [link.id, later.id].sort(),
  );
  t.is(typesOn("/former").filter((type) => type === "link.created").length, 1);
});

test.serial(
  "after five attempts, the events that waited fail, and a later test verifies the webhook",
  async (t) => {
    const organization = await service.createOrganization();
    const renew = async () => apiAt(service.url, await service.token(organization));
    let api = await renew();
    const { id } = await createRefused(api, "/never");
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

    receiver.respond("/never", accept);
    await sendTest(api, id);
    await until(async () => (await isVerified(api, id)) || undefined);
    t.is((await resend()).status, 202);
    const last = await api.createLink();
    const requests = await receiver.waitFor("/never", 8);
    t.true(requests.slice(6).some(({ body }) => body.data.id === last.id));
  },
);

test.serial("each call sends at most one test event, and only the last one is retried", async (t) => {
  const api = await createApi();
  const { id } = await createRefused(api, "/repeated");
  for (let count = 2; count <= 4; count++) {
    await sendTest(api, id);
    await receiver.waitFor("/repeated", count);
  }
  await until(async () => (await allDeliveriesOf(api, { id }))[0]?.attempts[0]);
  advanceClock(5_600);
  await receiver.waitFor("/repeated", 5);
  await passQueue(t, "/after-repeated");
  t.is(typesOn("/repeated").length, 5);
});

test.serial("an endpoint that refuses its test event with 410 gets another when it is enabled", async (t) => {
  const api = await createApi();
  receiver.exposeVerification("/gone");
  receiver.respond("/gone", (response) => response.writeHead(410).end());
  const { id } = await createWebhook(api, receiver.url("/gone"));
  const find = async () => (await api.get<WebhookBody>(`/v1/webhooks/${id}`)).body;
  await until(async () => !(await find()).enabled || undefined);
  receiver.respond("/gone", accept);
  await api.send("PATCH", `/v1/webhooks/${id}`, { json: { enabled: true } });
  await until(async () => (await find()).verified || undefined);
  t.deepEqual(typesOn("/gone"), ["webhook.test", "webhook.test"]);
});

test.serial("a webhook that is created disabled is verified when it is enabled", async (t) => {
  const api = await createApi();
  receiver.exposeVerification("/off");
  const json = { url: receiver.url("/off"), events: ["link.created"], enabled: false };
  const { body } = await api.send<WebhookBody>("POST", "/v1/webhooks", { json });
  t.like(body, { enabled: false, verified: false });
  await passQueue(t, "/beside-off");
  t.deepEqual(typesOn("/off"), []);
  await api.send("PATCH", `/v1/webhooks/${body.id}`, { json: { enabled: true } });
  await until(async () => (await isVerified(api, body.id)) || undefined);
  t.deepEqual(typesOn("/off"), ["webhook.test"]);
});
