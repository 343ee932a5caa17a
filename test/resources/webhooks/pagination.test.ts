import test from "ava";
import { type Api, apiAt, isProblem } from "../../harness/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, type DeliveryBody, type WebhookBody } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const newcomer = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close()]));

type Page = { data: (WebhookBody | DeliveryBody)[]; next_cursor: string | null };

/** A list with seven items, and their ids, newest first. */
async function webhooks(api: Api) {
  const ids: string[] = [];
  for (let made = 0; made < 7; made++) ids.unshift((await createWebhook(api, receiver.url("/page"))).id);
  return { path: "/v1/webhooks", ids };
}

async function deliveries(api: Api) {
  const { id } = await createWebhook(api, receiver.url("/page"), ["webhook.test"]);
  const ids: string[] = [];
  for (let sent = 0; sent < 7; sent++)
    ids.unshift((await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`)).body.id);
  return { path: `/v1/webhooks/${id}/deliveries`, ids };
}

const read = (api: Api, path: string, limit: number, cursor?: string) =>
  api.get<Page>(`${path}?limit=${limit}${cursor ? `&cursor=${cursor}` : ""}`);

for (const [name, make] of [
  ["webhooks", webhooks],
  ["deliveries", deliveries],
] as const) {
  test(`the pages of ${name} make up the whole list, newest first`, async (t) => {
    const api = await newcomer();
    const { path, ids } = await make(api);
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

  test(`sec 100: a cursor of ${name} is good for this list alone, and as it was given`, async (t) => {
    const [api, stranger] = [await newcomer(), await newcomer()];
    const { path } = await make(api);
    const theirs = await make(stranger);
    const { next_cursor } = (await read(api, path, 3)).body;
    const foreign = (await read(stranger, theirs.path, 3)).body.next_cursor as string;
    const other = (await read(api, (await (make === webhooks ? deliveries : webhooks)(api)).path, 3)).body;
    const [first = "", ...rest] = next_cursor ?? "";
    const changed = (first === "A" ? "B" : "A") + rest.join("");
    for (const cursor of [foreign, other.next_cursor as string, changed, "x", `${next_cursor}AAAA`]) {
      const reply = await read(api, path, 3, cursor);
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
  test(`a query of ${name} that is wrong is refused, and the field is named`, async (t) => {
    const api = await newcomer();
    const { path } = await make(api);
    for (const [query, code, field] of queries) {
      isProblem(t, await api.get(`${path}?${query}`), { status: 422, code, fields: [field] });
    }
  });
}
