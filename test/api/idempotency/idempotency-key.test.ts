import test from "ava";
import { apiAt, isProblem, type LinkBody, type PageBody, type Reply } from "../../harness/clients/api.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { connectUntilEnd } from "../../harness/clients/mcp.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import { createWebhook, deliveriesOf } from "../../harness/webhooks.ts";

export const databases = "all";

const { service, receiver } = await startWebhookService();
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);

const url = "https://example.com/";
const REUSED = { status: 422, code: "idempotency_key_reused" };
let count = 0;
const newKey = () => `key-${++count}`;

const post = <Body = LinkBody>(path: string, key: string, json?: unknown) =>
  api.send<Body>("POST", path, { ...(json !== undefined && { json }), headers: { "idempotency-key": key } });
const isReplayed = ({ headers }: Reply<unknown>) => headers.get("idempotency-replayed") === "true";
const linksTagged = async (tag: string) =>
  (await api.get<PageBody>(`/v1/links?limit=100&tag=${tag}`)).body.data;

/** Returns the parts of a response that a replay must repeat. */
const essence = ({ status, headers, text }: Reply<unknown>) => ({
  status,
  text,
  type: headers.get("content-type"),
  location: headers.get("location"),
  etag: headers.get("etag"),
});

let webhooks = 0;
const newWebhook = (events = ["link.created"]) =>
  createWebhook(api, receiver.url(`/hook-${++webhooks}`), events);
const POSTS: [name: string, path: () => Promise<string>, json?: unknown][] = [
  ["a link", async () => "/v1/links", { url, title: "once" }],
  ["links", async () => "/v1/links/bulk", { links: [{ url }, { url: "nonsense" }, { url }] }],
  ["failed deliveries", async () => `/v1/webhooks/${(await newWebhook()).id}/deliveries/resend-failed`],
  ["a test event", async () => `/v1/webhooks/${(await newWebhook()).id}/test`],
  [
    "a delivery",
    async () => {
      const webhook = await newWebhook(["webhook.test"]);
      await api.send("POST", `/v1/webhooks/${webhook.id}/test`);
      const [delivery] = await deliveriesOf(api, webhook);
      return `/v1/webhooks/${webhook.id}/deliveries/${delivery?.id}/resend`;
    },
  ],
];
test("repeating a POST with the same key replays the response and has no further effect", async (t) => {
  for (const [name, pathOf, json] of POSTS) {
    const path = await pathOf();
    const key = newKey();
    const first = await post(path, key, json);
    t.true(first.status < 300, first.text);
    t.false(isReplayed(first));
    const again = await post(path, key, json);
    t.deepEqual(essence(again), essence(first), name);
    t.true(isReplayed(again));
    t.not(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
    const anew = await post(path, newKey(), json);
    t.is(anew.status, first.status);
    t.false(isReplayed(anew));
    if (!path.includes("/resend")) t.notDeepEqual(essence(anew), essence(first));
  }
});

test("the document describes the key for every POST and for the bulk update, and for no other operation", async (t) => {
  const { document } = await contractOf(service.url);
  const methods = Object.values(document.paths).flatMap((path) =>
    Object.entries(path)
      .filter(([, { parameters }]) => parameters.some(({ name }) => name === "Idempotency-Key"))
      .map(([method]) => method),
  );
  const posts = Object.values(document.paths).filter((path) => "post" in path);
  t.deepEqual(methods.toSorted(), ["patch", ...posts.map(() => "post")]);
});

test("a key reused for another body, operation or path is rejected and has no effect", async (t) => {
  const [webhook, other] = [await newWebhook(), await newWebhook()];
  const key = newKey();
  const json = { url, tags: ["reused"] };
  await post("/v1/links", key, json);
  const others: [path: string, json?: unknown][] = [
    ["/v1/links", { ...json, title: "another" }],
    ["/v1/links", null],
    ["/v1/links/bulk", json],
    [`/v1/webhooks/${webhook.id}/test`],
  ];
  for (const [path, body] of others) isProblem(t, await post(path, key, body), REUSED);
  t.is((await linksTagged("reused")).length, 1);
  const testKey = newKey();
  t.is((await post(`/v1/webhooks/${webhook.id}/test`, testKey)).status, 202);
  isProblem(t, await post(`/v1/webhooks/${other.id}/test`, testKey), REUSED);
  isProblem(t, await post(`/v1/webhooks/${webhook.id}/rotate-secret`, testKey), REUSED);
  t.true(isReplayed(await post("/v1/links", key, json)), "the response is still stored");
});

test("a key is compared exactly, and an invalid one creates nothing", async (t) => {
  const key = newKey();
  await post("/v1/links", key, { url });
  t.false(isReplayed(await post("/v1/links", key.toUpperCase(), { url })));
  const refused = await post("/v1/links", "a b", { url, tags: ["wrong-key"] });
  isProblem(t, refused, { status: 422, code: "invalid_idempotency_key", fields: ["Idempotency-Key"] });
  t.deepEqual(await linksTagged("wrong-key"), []);
});

/** Leaves out what only one of the two returns: REST the secret of a webhook, the tool the page that shows it. */
function shared(result: unknown): object {
  const { secret, secret_url, ...fields } = result as Record<string, unknown>;
  return fields;
}

test("a REST call and the tool of the same operation share keys, in either order", async (t) => {
  const agent = await connectUntilEnd(t, `${service.url}/mcp`, token);
  const call = (name: string, args: object) => agent.callTool({ name, arguments: { ...args } });
  const { id } = await newWebhook();
  const pairs: [tool: string, args: object, path: string][] = [
    ["create_link", { url, tags: ["a", "a"] }, "/v1/links"],
    ["create_links", { links: [{ url }, { url: 5 }] }, "/v1/links/bulk"],
    ["create_webhook", { url: receiver.url("/shared"), events: ["link.created"] }, "/v1/webhooks"],
    ["rotate_webhook_secret", { id }, `/v1/webhooks/${id}/rotate-secret`],
    ["test_webhook", { id }, `/v1/webhooks/${id}/test`],
  ];
  for (const [tool, args, path] of pairs) {
    const json = "id" in args ? undefined : args;
    const key = newKey();
    const first = await post<Record<string, unknown>>(path, key, json);
    const again = await call(tool, { ...args, idempotency_key: key });
    t.deepEqual(shared(again.structuredContent), shared(first.body), tool);
    t.notRegex(JSON.stringify(again), /whsec_/);
    t.like(again._meta, { idempotency_replayed: true });
    // A URL can have one webhook.
    if (tool === "create_webhook") await api.send("DELETE", `/v1/webhooks/${first.body.id}`);

    const otherKey = newKey();
    const byTool = await call(tool, { ...args, idempotency_key: otherKey });
    t.is(byTool._meta?.idempotency_replayed, undefined);
    const byRest = await post<Record<string, unknown>>(path, otherKey, json);
    t.true(isReplayed(byRest), tool);
    if ("secret" in first.body) {
      isProblem(t, byRest as never, { status: 409, code: "secret_shown_once" });
      continue;
    }
    t.deepEqual(byRest.body, byTool.structuredContent);
    t.is(byRest.status, first.status);
    for (const header of ["etag", "location"]) t.is(byRest.headers.has(header), first.headers.has(header));
  }
});
