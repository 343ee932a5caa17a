import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  type DeliveryPage,
  deliveriesOf,
  until,
} from "../../harness/webhooks.ts";

export const databases = "all";

const database = await createTestDatabase();
const receiver = await startReceiver();
const service = await startTestService({
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64url"),
});
const knex = knexFactory(knexConfig(database.url));
test.after.always(async () => {
  await Promise.all([service.close(), receiver.close(), knex.destroy()]);
  await database.drop();
});

/** Creates a webhook with deliveries that have succeeded: six created links, three of which were updated. */
async function withDeliveries(path: string) {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const webhook = await createWebhook(api, receiver.url(path), ["link.created", "link.updated"]);
  for (let count = 0; count < 6; count++) {
    const link = await api.createLink();
    if (count % 2) await api.send("PATCH", `/v1/links/${link.id}`, { json: { title: "Changed" } });
  }
  const settled = () =>
    until(async () => {
      const all = await deliveriesOf(api, webhook);
      return all.length === 9 && all.every(({ status }) => status !== "pending") ? all : undefined;
    });
  const address = `/v1/webhooks/${webhook.id}/deliveries`;
  const list = async (query: string) => (await api.get<DeliveryPage>(`${address}?${query}`)).body;
  /** Makes deliveries fail finally, as after three days. */
  const fail = (ids: string[]) =>
    knex("deliveries")
      .where({ webhook_id: webhook.id })
      .whereIn("event_id", ids)
      .update({ status: "failed" });
  return { api, webhook, address, all: await settled(), settled, list, fail };
}

const idsOf = (deliveries: DeliveryBody[]) => deliveries.map(({ id }) => id);

test("deliveries are listed by status and by type, in pages, newest first", async (t) => {
  const { all, list, fail } = await withDeliveries("/filtered");
  const failed = all.filter((_, index) => index % 3 === 0);
  await fail(idsOf(failed));
  const updated = all.filter(({ type }) => type === "link.updated");
  t.is(updated.length, 3);
  const both = failed.filter(({ type }) => type === "link.created");
  for (const [filter, expected] of [
    ["status=failed", failed],
    ["event_type=link.updated", updated],
    ["event_type=link.created&status=failed", both],
    ["event_type=link.clicked", []],
    ["status=pending", []],
  ] as const) {
    for (const limit of [1, 2, 100]) {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: DeliveryPage = await list(`${filter}&limit=${limit}${cursor ? `&cursor=${cursor}` : ""}`);
        t.true(page.data.length <= limit);
        seen.push(...idsOf(page.data));
        cursor = page.next_cursor;
      } while (cursor);
      t.deepEqual(seen, idsOf([...expected]), `${filter}, ${limit}`);
    }
  }
  // And the test event that verified the webhook.
  t.is((await list("status=succeeded")).data.length, all.length - failed.length + 1);
  t.is((await list("event_type=webhook.test")).data.length, 1);
});

test("a cursor belongs to the list with the same filter", async (t) => {
  const { api, address, list } = await withDeliveries("/cursors");
  const { next_cursor } = await list("status=succeeded&limit=2");
  for (const filter of ["", "status=failed&", "status=succeeded&event_type=link.created&"]) {
    const reply = await api.get(`${address}?${filter}cursor=${next_cursor}`);
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  }
  t.truthy((await list(`status=succeeded&limit=2&cursor=${next_cursor}`)).data.length);
});

test("all failed deliveries are resent in one request, with the same IDs, and no others", async (t) => {
  const { api, address, all, fail, settled } = await withDeliveries("/resent");
  const failed = idsOf(all.slice(0, 4));
  await fail(failed);
  const before = receiver.received("/resent").length;
  const reply = await api.send("POST", `${address}/resend-failed`);
  t.is(reply.status, 202);
  t.deepEqual(reply.body as object, { resent: 4, has_more: false });
  const received = await receiver.waitFor("/resent", before + 4);
  t.deepEqual(
    received
      .slice(before)
      .map(({ headers }) => headers["webhook-id"])
      .sort(),
    [...failed].sort(),
  );
  for (const { id, attempts, status } of await settled()) {
    t.is(status, "succeeded");
    t.is(attempts.length, failed.includes(id) ? 2 : 1);
  }
  t.deepEqual((await api.send("POST", `${address}/resend-failed`)).body as object, {
    resent: 0,
    has_more: false,
  });
  t.is(receiver.received("/resent").length, before + 4);
});

test("a repeated request with the same idempotency key resends nothing again", async (t) => {
  const { api, address, all, fail, settled } = await withDeliveries("/repeated");
  await fail(idsOf(all.slice(0, 2)));
  const headers = { "idempotency-key": "resend-1" };
  const first = await api.send("POST", `${address}/resend-failed`, { headers });
  await settled();
  await fail(idsOf(all.slice(0, 2)));
  const again = await api.send("POST", `${address}/resend-failed`, { headers });
  t.deepEqual(again.body, first.body);
  t.is((await settled()).filter(({ status }) => status === "failed").length, 2);
});

test("concurrent requests resend each failed delivery once", async (t) => {
  const { api, address, all, fail, settled } = await withDeliveries("/concurrent");
  await fail(idsOf(all));
  const replies = await Promise.all(
    Array.from({ length: 5 }, () => api.send<{ resent: number }>("POST", `${address}/resend-failed`)),
  );
  t.is(
    replies.reduce((sum, { body }) => sum + body.resent, 0),
    all.length,
  );
  for (const { attempts } of await settled()) t.is(attempts.length, 2);
});

test("failed deliveries of a disabled or unverified webhook are not resent", async (t) => {
  const { api, webhook, address, all, fail } = await withDeliveries("/not-resent");
  await fail(idsOf(all));
  await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: false } });
  isProblem(t, await api.send("POST", `${address}/resend-failed`), { status: 409, code: "webhook_disabled" });
  receiver.exposeVerification("/moved");
  receiver.respond("/moved", (response) => response.writeHead(500).end());
  await api.send("PATCH", `/v1/webhooks/${webhook.id}`, {
    json: { enabled: true, url: receiver.url("/moved") },
  });
  isProblem(t, await api.send("POST", `${address}/resend-failed`), {
    status: 409,
    code: "webhook_unverified",
  });
  t.is(
    await knex("deliveries")
      .where({ webhook_id: webhook.id, status: "failed" })
      .then((rows) => rows.length),
    9,
  );
});
