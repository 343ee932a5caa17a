import test from "ava";
import { type Api, apiAt, isProblem } from "../../harness/clients/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  allDeliveriesOf,
  createWebhook,
  type DeliveryBody,
  type WebhookBody,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

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

  const queries: [query: string, code: string, field: string][] = [
    ["limit=0", "invalid_limit", "limit"],
    ["limit=101", "invalid_limit", "limit"],
    ["limit=-1", "invalid_limit", "limit"],
    ["limit=1.5", "invalid_limit", "limit"],
    ["limit=ten", "invalid_limit", "limit"],
    ["cursor=", "invalid_cursor", "cursor"],
    ["status=failed", "unknown_field", "status"],
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
