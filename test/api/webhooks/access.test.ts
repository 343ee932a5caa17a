import test from "ava";
import { type Api, isInvalid, isMissing, type Reply } from "../../harness/clients/api.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import type { DeliveryBody, WebhookBody } from "../../harness/webhooks.ts";
import { allDeliveriesOf, createWebhook, deliveriesOf, waitForDelivery } from "../../harness/webhooks.ts";

export const databases = "all";

const { receiver, newApi, subscribe } = await startWebhookService();

const UNKNOWN = "whk_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const CALLS: [method: string, path: string, json?: object][] = [
  ["GET", ""],
  ["PATCH", "", { enabled: false }],
  ["PATCH", "", {}],
  ["DELETE", ""],
  ["POST", "/rotate-secret"],
  ["POST", "/test"],
  ["GET", "/deliveries"],
  ["GET", "/deliveries/{delivery_id}"],
  ["POST", "/deliveries/resend-failed"],
  ["POST", "/deliveries/{delivery_id}/resend"],
];
test("each call returns the same 404 for a webhook of another organization and an unknown one", async (t) => {
  const api = await newApi();
  const { api: stranger, webhook, path: at, address } = await subscribe(["webhook.test"]);
  const { secret, ...created } = webhook;
  await stranger.send("POST", `${address}/test`);
  const delivery = await waitForDelivery(stranger, created, ({ status }) => status === "succeeded");
  const count = receiver.received(at).length;
  for (const [method, path, json] of CALLS) {
    const details = new Set<string>();
    for (const id of [created.id, UNKNOWN, "x", "%00", "whk_"]) {
      const called = `/v1/webhooks/${id}${path.replace("{delivery_id}", delivery.id)}`;
      const reply = await api.send(method, called, json && { json });
      isMissing(t, reply);
      details.add(reply.body.detail);
    }
    t.is(details.size, 1, `${method} ${path}`);
  }
  t.deepEqual((await stranger.get<WebhookBody>(address)).body, created);
  t.deepEqual(await deliveriesOf(stranger, created), [delivery]);
  t.is(receiver.received(at).length, count);
});

type Page = { data: (WebhookBody | DeliveryBody)[]; next_cursor: string | null };

/** Creates a list of seven items; returns its path and their IDs, newest first. */
async function webhooks(api: Api) {
  const ids: string[] = [];
  for (let created = 0; created < 7; created++)
    ids.unshift((await createWebhook(api, receiver.url(`/page-${created}`))).id);
  return { path: "/v1/webhooks", ids };
}

async function deliveries(api: Api) {
  const webhook = await createWebhook(api, receiver.url("/page"), ["webhook.test"]);
  const path = `/v1/webhooks/${webhook.id}`;
  // The first one verified the webhook.
  const ids = (await allDeliveriesOf(api, webhook)).map(({ id }) => id);
  for (let sent = 0; sent < 6; sent++)
    ids.unshift((await api.send<DeliveryBody>("POST", `${path}/test`)).body.id);
  return { path: `${path}/deliveries`, ids };
}

const read = (api: Api, path: string, limit: number, cursor = "") =>
  api.get<Page>(`${path}?limit=${limit}${cursor && `&cursor=${cursor}`}`);

for (const [name, create] of [
  ["webhooks", webhooks],
  ["deliveries", deliveries],
] as const) {
  test(`the pages of ${name} are the organization's list, newest first, and a cursor is of no other`, async (t) => {
    const [api, stranger] = [await newApi(), await newApi()];
    const { path, ids } = await create(api);
    const theirs = await create(stranger);
    for (const limit of [1, 3, 7, 100]) {
      const seen: string[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const { body }: Reply<Page> = await read(api, path, limit, cursor);
        t.true(body.data.length <= limit);
        seen.push(...body.data.map(({ id }) => id));
        cursor = body.next_cursor;
      }
      t.deepEqual(seen, ids);
    }

    const { next_cursor } = (await read(api, path, 3)).body;
    const foreign = (await read(stranger, theirs.path, 3)).body.next_cursor as string;
    const other = (await read(api, (await (create === webhooks ? deliveries : webhooks)(api)).path, 3)).body;
    const [first = "", ...rest] = next_cursor ?? "";
    const changed = (first === "A" ? "B" : "A") + rest.join("");
    for (const cursor of [foreign, other.next_cursor as string, changed, "x", `${next_cursor}AAAA`]) {
      const reply = await read(api, path, 3, cursor);
      isInvalid(t, reply, "cursor");
    }
    isInvalid(t, await read(api, path, 0), "limit");
  });
}
