import type { ServerResponse } from "node:http";
import test from "ava";
import { isInvalid, isMissing, isProblem } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import type { DeliveryBody, DeliveryDetailsBody, DeliveryPage, WebhookPage } from "../../harness/webhooks.ts";
import { createWebhook, deliveriesOf, until, waitForDelivery } from "../../harness/webhooks.ts";

export const databases = "all";

const { receiver, knex, respondWith, hold, subscribe } = await startWebhookService();

// More than the first retry waits.
const RETRY_MS = 6_000;
// Also more than the second retry waits, in case that the first one came before the delivery was sent again.
const LATER_RETRY_MS = 10 * 60_000;

const isDelivered = ({ status }: DeliveryBody) => status === "succeeded";
const idsOf = (deliveries: DeliveryBody[]) => deliveries.map(({ id }) => id);

/** Creates a webhook with deliveries that have succeeded: six created links, three of which were updated. */
async function withDeliveries() {
  const subscribed = await subscribe(["link.created", "link.updated"]);
  const { api, webhook } = subscribed;
  for (let count = 0; count < 6; count++) {
    const link = await api.createLink();
    if (count % 2) await api.send("PATCH", `/v1/links/${link.id}`, { json: { title: "Changed" } });
  }
  const settled = () =>
    until(async () => {
      const all = await deliveriesOf(api, webhook);
      return all.length === 9 && all.every(({ status }) => status !== "pending") ? all : undefined;
    });
  const log = `${subscribed.address}/deliveries`;
  const list = async (query: string) => (await api.get<DeliveryPage>(`${log}?${query}`)).body;
  const resendFailed = () => api.send<{ resent: number }>("POST", `${log}/resend-failed`);
  /** Makes deliveries fail finally, as after three days. */
  const fail = (failed: DeliveryBody[]) =>
    knex("deliveries")
      .where({ webhook_id: webhook.id })
      .whereIn("event_id", idsOf(failed))
      .update({ status: "failed" });
  return { ...subscribed, log, all: await settled(), settled, list, fail, resendFailed };
}

test("deliveries are listed by status and by type, in pages, newest first", async (t) => {
  const { api, log, all, list, fail } = await withDeliveries();
  const failed = all.filter((_, index) => index % 3 === 0);
  await fail(failed);
  const updated = all.filter(({ type }) => type === "link.updated");
  t.is(updated.length, 3);
  for (const [filter, expected] of [
    ["status=failed", failed],
    ["event_type=link.updated", updated],
    ["event_type=link.created&status=failed", failed.filter(({ type }) => type === "link.created")],
    ["event_type=link.clicked", []],
    ["status=pending", []],
  ] as const) {
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page: DeliveryPage = await list(`${filter}&limit=2${cursor && `&cursor=${cursor}`}`);
      t.true(page.data.length <= 2);
      seen.push(...idsOf(page.data));
      cursor = page.next_cursor;
    }
    t.deepEqual(seen, idsOf([...expected]), filter);
  }
  // And the test event that verified the webhook.
  t.is((await list("status=succeeded")).data.length, all.length - failed.length + 1);
  t.is((await list("event_type=webhook.test")).data.length, 1);

  const { next_cursor } = await list("status=succeeded&limit=2");
  for (const filter of ["", "status=failed&", "status=succeeded&event_type=link.created&"]) {
    const reply = await api.get(`${log}?${filter}cursor=${next_cursor}`);
    isInvalid(t, reply, "cursor");
  }
});

test("all failed deliveries are resent in one request, with the same IDs, and no others", async (t) => {
  const { path, all, fail, settled, resendFailed } = await withDeliveries();
  const failed = all.slice(0, 4);
  await fail(failed);
  const before = receiver.received(path).length;
  const { status, body } = await resendFailed();
  t.deepEqual([status, body as object], [202, { resent: 4, has_more: false }]);
  const received = (await receiver.waitFor(path, before + 4)).slice(before);
  t.deepEqual(received.map(({ headers }) => headers["webhook-id"]).sort(), idsOf(failed).sort());
  for (const { id, attempts, status } of await settled()) {
    t.is(status, "succeeded");
    t.is(attempts.length, idsOf(failed).includes(id) ? 2 : 1);
  }
});

test("concurrent requests resend each failed delivery once", async (t) => {
  const { all, fail, settled, resendFailed } = await withDeliveries();
  await fail(all);
  const replies = await Promise.all(Array.from({ length: 5 }, resendFailed));
  const resent = replies.reduce((sum, { body }) => sum + body.resent, 0);
  t.is(resent, all.length);
  for (const { attempts } of await settled()) t.is(attempts.length, 2);
});

test("failed deliveries of a disabled or unverified webhook are not resent", async (t) => {
  const { api, address, webhook, all, fail, resendFailed } = await withDeliveries();
  await fail(all);
  await api.send("PATCH", address, { json: { enabled: false } });
  isProblem(t, await resendFailed(), { status: 409, code: "webhook_disabled" });
  receiver.exposeVerification("/moved");
  respondWith("/moved", 500);
  await api.send("PATCH", address, { json: { enabled: true, url: receiver.url("/moved") } });
  isProblem(t, await resendFailed(), { status: 409, code: "webhook_unverified" });
  t.is((await knex("deliveries").where({ webhook_id: webhook.id, status: "failed" })).length, 9);
});

test("an unknown delivery or one of another webhook is neither shown nor resent", async (t) => {
  const { api, webhook, path, address } = await subscribe(["webhook.test"]);
  const other = await createWebhook(api, receiver.url("/resend-other"), ["webhook.test"]);
  const { body } = await api.send<DeliveryBody>("POST", `${address}/test`);
  await waitForDelivery(api, webhook, isDelivered);
  for (const id of [body.id, "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"]) {
    const delivery = `/v1/webhooks/${other.id}/deliveries/${id}`;
    isMissing(t, await api.get(delivery));
    isMissing(t, await api.send("POST", `${delivery}/resend`));
  }
  t.is(receiver.received("/resend-other").length, 0);
  t.is(receiver.received(path).length, 1);
});

test("a delivery in flight has no exchange yet, and resending it starts no second attempt", async (t) => {
  const { api, webhook, path, address } = await subscribe(["webhook.test"]);
  const release = hold(path);
  const { body } = await api.send<DeliveryBody>("POST", `${address}/test`);
  await receiver.waitFor(path, 1);
  const pending = { request_headers: null, response: null, attempts: [] };
  const delivery = `${address}/deliveries/${body.id}`;
  t.like((await api.get<DeliveryDetailsBody>(delivery)).body, pending);
  const again = await api.send<DeliveryBody>("POST", `${delivery}/resend`);
  t.deepEqual([again.status, again.body.status], [202, "pending"]);
  release();
  t.is((await waitForDelivery(api, webhook, isDelivered)).attempts.length, 1);
  t.is(receiver.received(path).length, 1);
});

test("a deleted webhook is gone with its delivery log, also during an attempt, and receives nothing", async (t) => {
  const { api, path, address } = await subscribe();
  const other = await createWebhook(api, receiver.url("/kept"));
  const release = hold(path, 500);
  await api.createLink();
  await receiver.waitFor(path, 1);
  const reply = await api.send("DELETE", address);
  t.deepEqual([reply.status, reply.text], [204, ""]);
  release();
  for (const gone of [address, `${address}/deliveries`]) isMissing(t, await api.get(gone));
  isMissing(t, await api.send("DELETE", address));
  await api.createLink();
  await receiver.waitFor("/kept", 2);
  t.is(receiver.received(path).length, 1);
  const { data } = (await api.get<WebhookPage>("/v1/webhooks")).body;
  t.deepEqual([data.length, data[0]?.id], [1, other.id]);
});

test.serial("a disabled webhook receives no events, and its pending retries are not sent", async (t) => {
  const { api, webhook, path, address } = await subscribe();
  respondWith(path, 500);
  await api.createLink();
  await waitForDelivery(api, webhook, ({ attempts }) => attempts.length === 1);
  await api.send("PATCH", address, { json: { enabled: false } });
  await api.createLink();
  const [delivery, ...others] = await deliveriesOf(api, webhook);
  t.deepEqual(others, [], "later events are not for this webhook");
  for (const action of ["test", `deliveries/${delivery?.id}/resend`])
    isProblem(t, await api.send("POST", `${address}/${action}`), { status: 409, code: "webhook_disabled" });
  advanceClock(RETRY_MS);
  const ended = await waitForDelivery(api, webhook, ({ status }) => status === "failed");
  t.is(ended.attempts.at(-1)?.error, "Not sent: the webhook is disabled.");
  t.is(receiver.received(path).length, 1);
});

async function exchangeWith(respond: (response: ServerResponse) => void) {
  const { api, address, path } = await subscribe(["webhook.test"]);
  receiver.respond(path, respond);
  const { id } = (await api.send<DeliveryBody>("POST", `${address}/test`)).body;
  const read = (matches: (delivery: DeliveryDetailsBody) => boolean = () => true) =>
    until(async () => {
      const { body } = await api.get<DeliveryDetailsBody>(`${address}/deliveries/${id}`);
      return matches(body) ? body : undefined;
    });
  return { api, address, path, id, read, delivery: await read(({ attempts }) => attempts.length > 0) };
}

test.serial("a delivery has the request sent and the last response, which no list shows", async (t) => {
  const { api, address, path, id, read, delivery } = await exchangeWith((response) => {
    response.setHeader("x-long", "x".repeat(4000));
    response.writeHead(500).end(Buffer.alloc(5000, 0xff));
  });
  t.like(delivery, { id, status: "pending" });
  t.like(delivery.response, { status: 500, body: "\ufffd".repeat(1365), truncated: true });
  const [received] = receiver.received(path);
  t.is(delivery.request_headers?.["webhook-signature"], received?.headers["webhook-signature"] as string);
  t.is(JSON.stringify(delivery.request), received?.text ?? "");
  t.false(/\ufffd|x-long/.test((await api.get(`${address}/deliveries`)).text));

  receiver.respond(path, (response) => response.writeHead(501).end("the last response"));
  await api.send("POST", `${address}/deliveries/${id}/resend`);
  await read(({ attempts }) => attempts.length === 2);
  await api.send("PATCH", address, { json: { enabled: false } });
  advanceClock(LATER_RETRY_MS);
  await api.createLink(); // an event wakes the dispatcher, which sleeps until the retry
  const failed = await read(({ status }) => status === "failed");
  t.regex(failed.attempts.at(-1)?.error ?? "", /^Not sent: the webhook is disabled/);
  const last = { status: 501, body: "the last response" };
  t.like(failed.response, last, "an attempt that isn't sent has none");
});

test("requests and responses are encrypted in the database, and belong to their delivery", async (t) => {
  const { id, read } = await exchangeWith((response) =>
    response.writeHead(404).end("Cannot POST /T000/a-secret-path"),
  );
  const [row] = await knex("deliveries").where({ event_id: id });
  t.regex(row?.exchange ?? "", /^v1\.[\w-]+$/);
  t.false(JSON.stringify(row).includes("a-secret-path"));
  t.regex((await read()).response?.body ?? "", /a-secret-path/);
  const other = await exchangeWith((response) => response.writeHead(404).end("another"));
  const [copied] = await knex("deliveries").where({ event_id: other.id });
  const exchange: string | null = copied?.exchange ?? null;
  await knex("deliveries").where({ event_id: id }).update({ exchange });
  t.like(await read(), { id, response: null, request_headers: null });
});
