import test from "ava";
import { type Api, apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  allDeliveriesOf,
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  type WebhookBody,
  type WebhookPage,
  waitForDelivery,
} from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const app = await service.createOrganization();
const owner = apiAt(service.url, await service.token(app));
const tokens = new Map<string, string>();
for (const scope of ["webhooks:read", "webhooks:write", "links:read links:write"])
  tokens.set(scope, await service.token(app, { scope }));

test.after.always(() => Promise.all([service.close(), receiver.close()]));

type Route = { method: string; path: string; needs: string; success: number; json?: object };
const routes: Route[] = [
  { method: "GET", path: "", needs: "webhooks:read", success: 200 },
  { method: "HEAD", path: "", needs: "webhooks:read", success: 200 },
  { method: "GET", path: "/{id}", needs: "webhooks:read", success: 200 },
  { method: "GET", path: "/{id}/deliveries", needs: "webhooks:read", success: 200 },
  { method: "GET", path: "/{id}/deliveries/{delivery_id}", needs: "webhooks:read", success: 200 },
  {
    method: "POST",
    path: "",
    needs: "webhooks:write",
    success: 201,
    json: { url: receiver.url("/created"), events: ["link.created"] },
  },
  { method: "PATCH", path: "/{id}", needs: "webhooks:write", success: 200, json: { enabled: false } },
  { method: "DELETE", path: "/{id}", needs: "webhooks:write", success: 204 },
  { method: "POST", path: "/{id}/rotate-secret", needs: "webhooks:write", success: 200 },
  { method: "POST", path: "/{id}/test", needs: "webhooks:write", success: 202 },
  { method: "POST", path: "/{id}/deliveries/{delivery_id}/resend", needs: "webhooks:write", success: 202 },
  { method: "POST", path: "/{id}/deliveries/resend-failed", needs: "webhooks:write", success: 202 },
];

/** Creates the webhook and the delivery that the routes need, after deleting all others. */
async function setUp() {
  const { body } = await owner.get<WebhookPage>("/v1/webhooks?limit=100");
  for (const { id } of body.data) await owner.send("DELETE", `/v1/webhooks/${id}`);
  const { id } = await createWebhook(owner, receiver.url("/scopes"));
  const { body: delivery } = await owner.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`);
  return { id, delivery };
}

for (const { method, path, needs, success, json } of routes) {
  for (const [scope, token] of tokens) {
    const isAllowed = scope === needs || scope === needs.replace(":read", ":write");
    const name = `${method} /v1/webhooks${path} with ${scope}`;
    test.serial(`${name} is ${isAllowed ? "allowed" : "rejected and changes nothing"}`, async (t) => {
      const { id, delivery } = await setUp();
      const before = await owner.get<WebhookPage>("/v1/webhooks");
      const address = `/v1/webhooks${path}`.replace("{id}", id).replace("{delivery_id}", delivery.id);
      const reply = await apiAt(service.url, token).send(method, address, json && { json });
      if (isAllowed) {
        t.is(reply.status, success, reply.text);
        return;
      }
      t.is(challengeOf(reply)?.error, "insufficient_scope");
      t.is(challengeOf(reply)?.scope, `${scope} ${needs}`);
      if (method !== "HEAD") isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.deepEqual((await owner.get<WebhookPage>("/v1/webhooks")).body, before.body);
    });
  }

  test(`${method} /v1/webhooks${path} without a token is rejected with the required scope`, async (t) => {
    const address = `/v1/webhooks${path}`.replace("{id}", "whk_x").replace("{delivery_id}", "evt_x");
    const reply = await apiAt(service.url).send(method, address, json && { json });
    t.is(reply.status, 401);
    t.is(challengeOf(reply)?.scope, needs);
  });
}

const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));

const UNKNOWN = "whk_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const CALLS: [method: string, path: string, json?: object][] = [
  ["GET", ""],
  ["PATCH", "", { enabled: false }],
  ["PATCH", "", {}],
  ["DELETE", ""],
  ["POST", "/rotate-secret"],
  ["POST", "/test"],
  ["GET", "/deliveries"],
  ["GET", "/deliveries/evt_01ARZ3NDEKTSV4RRFFQ69G5FAV"],
  ["POST", "/deliveries/resend-failed"],
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

type Page = { data: (WebhookBody | DeliveryBody)[]; next_cursor: string | null };

/** Creates a list of seven items; returns its path and their IDs, newest first. */
async function webhooks(api: Api) {
  const ids: string[] = [];
  for (let created = 0; created < 7; created++)
    ids.unshift((await createWebhook(api, receiver.url(`/page-${created}`))).id);
  return { path: "/v1/webhooks", ids };
}

async function deliveries(api: Api) {
  const { id } = await createWebhook(api, receiver.url("/page"), ["webhook.test"]);
  // The first one verified the webhook.
  const ids = (await allDeliveriesOf(api, { id })).map((delivery) => delivery.id);
  for (let sent = 0; sent < 6; sent++)
    ids.unshift((await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`)).body.id);
  return { path: `/v1/webhooks/${id}/deliveries`, ids };
}

const read = (api: Api, path: string, limit: number, cursor?: string) =>
  api.get<Page>(`${path}?limit=${limit}${cursor ? `&cursor=${cursor}` : ""}`);

for (const [name, create] of [
  ["webhooks", webhooks],
  ["deliveries", deliveries],
] as const) {
  test(`the pages of ${name} contain the whole list, newest first`, async (t) => {
    const api = await createApi();
    const { path, ids } = await create(api);
    for (const limit of [1, 3, 7, 100]) {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await read(api, path, limit, cursor);
        t.true(body.data.length <= limit);
        seen.push(...body.data.map(({ id }) => id));
        cursor = body.next_cursor ?? undefined;
      } while (cursor);
      t.deepEqual(seen, ids);
    }
    t.deepEqual(
      (await api.get<Page>(path)).body.data.map(({ id }) => id),
      ids,
    );
  });

  test(`a cursor of ${name} is rejected for another list or if it was modified`, async (t) => {
    const [api, stranger] = [await createApi(), await createApi()];
    const { path } = await create(api);
    const theirs = await create(stranger);
    const { next_cursor } = (await read(api, path, 3)).body;
    const foreign = (await read(stranger, theirs.path, 3)).body.next_cursor as string;
    const other = (await read(api, (await (create === webhooks ? deliveries : webhooks)(api)).path, 3)).body;
    const [first = "", ...rest] = next_cursor ?? "";
    const changed = (first === "A" ? "B" : "A") + rest.join("");
    for (const cursor of [foreign, other.next_cursor as string, changed, "x", `${next_cursor}AAAA`]) {
      const reply = await read(api, path, 3, cursor);
      t.is(reply.status, 422, cursor);
      isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
    }
  });

  const queries: (readonly [query: string, code: string, field: string])[] = [
    ["limit=0", "invalid_limit", "limit"],
    ["limit=101", "invalid_limit", "limit"],
    ["limit=-1", "invalid_limit", "limit"],
    ["limit=1.5", "invalid_limit", "limit"],
    ["limit=ten", "invalid_limit", "limit"],
    ["cursor=", "invalid_cursor", "cursor"],
    name === "deliveries"
      ? ["status=lost", "invalid_status", "status"]
      : ["status=failed", "unknown_field", "status"],
    ...(name === "deliveries" ? [["event_type=link", "invalid_event_type", "event_type"] as const] : []),
    ["organization_id=org_x", "unknown_field", "organization_id"],
  ];
  test(`an invalid query for ${name} is rejected with the name of the field`, async (t) => {
    const api = await createApi();
    const { path } = await create(api);
    for (const [query, code, field] of queries) {
      const reply = await api.get(`${path}?${query}`);
      t.is(reply.status, 422, query);
      isProblem(t, reply, { status: 422, code, fields: [field] });
    }
  });
}
