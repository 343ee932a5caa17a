import test from "ava";
import {
  type Api,
  apiAt,
  isProblem,
  type LinkBody,
  type PageBody,
  type Reply,
} from "../../harness/clients/api.ts";
import { connectMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf, type NewWebhookBody } from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const otherApi = apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(async () => {
  await service.close();
  await receiver.close();
});

const url = "https://example.com/";
const IN_USE = { status: 409, code: "idempotency_key_in_use" };
const REUSED = { status: 422, code: "idempotency_key_reused" };
let count = 0;
const newKey = () => `key-${++count}`;

const post = <Body = LinkBody>(path: string, key: string, json?: unknown, caller: Api = api) =>
  caller.send<Body>("POST", path, {
    ...(json !== undefined && { json }),
    headers: { "idempotency-key": key },
  });
const isReplayed = ({ headers }: Reply<unknown>) => headers.get("idempotency-replayed") === "true";
const linksTagged = async (tag: string, caller = api) =>
  (await caller.get<PageBody>(`/v1/links?limit=100&tag=${tag}`)).body.data;

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
for (const [name, pathOf, json] of POSTS) {
  test(`${name}: repeating a POST with the same key replays the response and has no further effect`, async (t) => {
    const path = await pathOf();
    const key = newKey();
    const first = await post(path, key, json);
    t.true(first.status < 300, first.text);
    t.false(isReplayed(first));
    for (let round = 0; round < 2; round++) {
      const again = await post(path, key, json);
      t.deepEqual(essence(again), essence(first));
      t.true(isReplayed(again));
      t.not(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
    }
    const anew = await post(path, newKey(), json);
    t.is(anew.status, first.status);
    t.false(isReplayed(anew));
    if (!path.includes("/resend")) t.notDeepEqual(essence(anew), essence(first));
  });
}

test("a webhook's secret is shown once, also with a key, and is not stored with the response", async (t) => {
  const json = { url: receiver.url("/once"), events: ["link.deleted"] };
  const paths = ["/v1/webhooks", `/v1/webhooks/${(await newWebhook()).id}/rotate-secret`];
  const answers: string[] = [];
  const { begin } = service.storage.idempotency;
  service.storage.idempotency.begin = async (...request) => {
    const begun = await begin(...request);
    if ("answer" in begun) answers.push(begun.answer);
    return begun;
  };
  t.teardown(() => Object.assign(service.storage.idempotency, { begin }));
  for (const path of paths) {
    const key = newKey();
    const body = path === "/v1/webhooks" ? json : undefined;
    const first = await post<NewWebhookBody>(path, key, body);
    t.regex(first.body.secret, /^whsec_/);
    for (let round = 0; round < 2; round++) {
      const again = await post(path, key, body);
      isProblem(t, again, { status: 409, code: "secret_shown_once" });
      t.true(isReplayed(again));
    }
    t.true(answers.some((answer) => answer.includes(first.body.id)));
    t.false(answers.join().includes("whsec_"));
  }
  const { body } = await api.get<PageBody>("/v1/webhooks?limit=100");
  t.is(body.data.filter(({ url }) => url === json.url).length, 1);
});

test("the document describes the key for every POST and for no other method", async (t) => {
  const { body } = await api.get<{
    paths: Record<string, Record<string, { parameters: { name: string }[] }>>;
  }>("/v1/openapi.json");
  const methods = Object.values(body.paths).flatMap((path) =>
    Object.entries(path)
      .filter(([, { parameters }]) => parameters.some(({ name }) => name === "Idempotency-Key"))
      .map(([method]) => method),
  );
  t.deepEqual(methods, Array(POSTS.length + 2).fill("post"));
});

test("a response is replayed unchanged, even if the link was changed or deleted", async (t) => {
  const key = newKey();
  const json = { url, title: "before" };
  const first = await post("/v1/links", key, json);
  const path = `/v1/links/${first.body.id}`;
  await api.send("PATCH", path, { json: { title: "after" } });
  t.deepEqual(essence(await post("/v1/links", key, json)), essence(first));
  await api.send("DELETE", path);
  t.deepEqual(essence(await post("/v1/links", key, json)), essence(first));
});

test("50 concurrent POSTs with one key create one link; the others are rejected with Retry-After", async (t) => {
  for (let round = 0; round < 3; round++) {
    const [key, tag] = [newKey(), `concurrent-${round}`];
    const replies = await atOnce(50, () => post("/v1/links", key, { url, tags: [tag] }));
    const created = replies.filter(({ status }) => status === 201);
    t.is(created.filter((reply) => !isReplayed(reply)).length, 1);
    t.is(new Set(created.map(({ body }) => body.id)).size, 1);
    for (const reply of replies.filter(({ status }) => status !== 201)) {
      isProblem(t, reply, IN_USE);
      t.is(reply.headers.get("retry-after"), "1");
      t.false(isReplayed(reply));
    }
    t.is((await linksTagged(tag)).length, 1);
    t.true(isReplayed(await post("/v1/links", key, { url, tags: [tag] })));
  }
});

test("a key reused for another body, operation or path is rejected and has no effect", async (t) => {
  const [webhook, other] = [await newWebhook(), await newWebhook()];
  const key = newKey();
  const json = { url, tags: ["reused"] };
  await post("/v1/links", key, json);
  const others: [path: string, json?: unknown][] = [
    ["/v1/links", { url, tags: ["reused"], title: "another" }],
    ["/v1/links", { url, tags: ["reused", "x"] }],
    ["/v1/links", {}],
    ["/v1/links", null],
    ["/v1/links", [json]],
    ["/v1/links/bulk", { links: [json] }],
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

test("the order of fields and white space do not matter", async (t) => {
  const key = newKey();
  const first = await post("/v1/links", key, { url, metadata: { a: 1, b: 2 }, title: "x" });
  const again = await api.send<LinkBody>("POST", "/v1/links", {
    body: ` { "title":"x",\n"metadata": {"b":2, "a":1}, "url": "${url}" }`,
    headers: { "idempotency-key": key, "content-type": "application/json" },
  });
  t.deepEqual(essence(again), essence(first));
});

test("keys of two organizations are independent", async (t) => {
  const key = newKey();
  const mine = await post("/v1/links", key, { url });
  const theirs = await post("/v1/links", key, { url, title: "theirs" }, otherApi);
  t.is(theirs.status, 201);
  t.not(theirs.body.id, mine.body.id);
});

test("keys are compared exactly", async (t) => {
  const base = newKey();
  for (const key of [base, `${base}x`, base.toUpperCase(), `"${base}"`, "!".repeat(255), "~".repeat(254)]) {
    const reply = await post("/v1/links", key, { url });
    t.is(reply.status, 201);
    t.false(isReplayed(reply), key);
  }
});

for (const key of ["", " ", "a b", "a\tb", "ä", "x".repeat(256), "a, b"]) {
  // One after the other: lists with a filter are read one at a time.
  test.serial(
    `the key ${JSON.stringify(key.slice(0, 10))} of ${key.length} characters is rejected, and nothing is created`,
    async (t) => {
      const tag = `wrong-key-${key.length}-${Buffer.from(key.slice(0, 10)).toString("hex")}`;
      const reply = await post("/v1/links", key, { url, tags: [tag] });
      isProblem(t, reply, { status: 422, code: "invalid_idempotency_key", fields: ["Idempotency-Key"] });
      t.deepEqual(await linksTagged(tag), []);
    },
  );
}

test("errors 404 and 409 are replayed", async (t) => {
  await api.createLink({ slug: "idempotent-taken" });
  const rejected: [path: string, json: unknown, status: number, code: string, fields?: string[]][] = [
    ["/v1/links", { url, slug: "idempotent-taken" }, 409, "slug_taken", ["slug"]],
    ["/v1/webhooks/whk_unknown/test", undefined, 404, "not_found"],
  ];
  for (const [path, json, status, code, fields] of rejected) {
    const key = newKey();
    const replies = [await post(path, key, json), await post(path, key, json)];
    for (const reply of replies) isProblem(t, reply, { status, code, ...(fields && { fields }) });
    t.deepEqual(replies.map(isReplayed), [false, true]);
  }
  const webhook = await newWebhook();
  await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: false } });
  const key = newKey();
  isProblem(t, await post(`/v1/webhooks/${webhook.id}/test`, key), { status: 409, code: "webhook_disabled" });
  await api.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { enabled: true } });
  t.is((await post(`/v1/webhooks/${webhook.id}/test`, key)).status, 409);
  t.is((await post(`/v1/webhooks/${webhook.id}/test`, newKey())).status, 202);
});

test("an error before the operation runs leaves the key free for another request", async (t) => {
  const reader = apiAt(service.url, await service.token(app, { scope: "links:read" }));
  const rejected: [name: string, send: (key: string) => Promise<Reply<unknown>>, status: number][] = [
    ["an invalid value", (key) => post("/v1/links", key, { url: "nonsense" }), 422],
    ["an unknown field", (key) => post("/v1/links", key, { url, plan: "premium" }), 422],
    ["not an object", (key) => post("/v1/links", key, "text"), 422],
    ["too deep", (key) => postText(key, `${"[".repeat(30_000)}${"]".repeat(30_000)}`), 400],
    ["invalid JSON", (key) => postText(key, "{"), 400],
    ["another type", (key) => postText(key, "{}", "text/plain"), 415],
    ["a token without the scope", (key) => post("/v1/links", key, { url }, reader), 403],
    ["no token", (key) => post("/v1/links", key, { url }, apiAt(service.url)), 401],
  ];
  for (const [name, send, status] of rejected) {
    const key = newKey();
    for (let round = 0; round < 2; round++) {
      const reply = await send(key);
      t.is(reply.status, status, `${name}: ${reply.text}`);
      t.false(isReplayed(reply), name);
    }
    const reply = await post("/v1/links", key, { url });
    t.is(reply.status, 201, name);
    t.false(isReplayed(reply), name);
  }
});

const postText = (key: string, body: string, type = "application/json") =>
  api.send("POST", "/v1/links", { body, headers: { "idempotency-key": key, "content-type": type } });

test("a replay requires the scope of the operation", async (t) => {
  const key = newKey();
  await post("/v1/links", key, { url });
  const reader = apiAt(service.url, await service.token(app, { scope: "links:read" }));
  isProblem(t, await post("/v1/links", key, { url }, reader), { status: 403, code: "insufficient_scope" });
});

/** Leaves out what only one of the two returns: REST the secret of a webhook, the tool the page that shows it. */
function shared(result: unknown): object {
  const { secret, secret_url, ...fields } = result as Record<string, unknown>;
  return fields;
}

test("a REST call and the tool of the same operation share keys, in either order", async (t) => {
  const agent = await connectMcp(`${service.url}/mcp`, token);
  t.teardown(() => agent.close());
  const call = (name: string, args: object) => agent.callTool({ name, arguments: { ...args } });
  const webhook = await newWebhook();
  const pairs: [tool: string, args: object, path: string, json?: object][] = [
    ["create_link", { url, tags: ["a", "a"] }, "/v1/links", { url, tags: ["a", "a"] }],
    ["create_links", { links: [{ url }, { url: 5 }] }, "/v1/links/bulk", { links: [{ url }, { url: 5 }] }],
    [
      "create_webhook",
      { url: receiver.url("/shared"), events: ["link.created"] },
      "/v1/webhooks",
      { url: receiver.url("/shared"), events: ["link.created"] },
    ],
    ["rotate_webhook_secret", { id: webhook.id }, `/v1/webhooks/${webhook.id}/rotate-secret`],
    ["test_webhook", { id: webhook.id }, `/v1/webhooks/${webhook.id}/test`],
  ];
  for (const [tool, args, path, json] of pairs) {
    const key = newKey();
    const first = await post<Record<string, unknown>>(path, key, json);
    const again = await call(tool, { ...args, idempotency_key: key });
    t.deepEqual(shared(again.structuredContent), shared(first.body), tool);
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

test("tools reject the same keys as REST", async (t) => {
  const agent = await connectMcp(`${service.url}/mcp`, token);
  t.teardown(() => agent.close());
  const failure = async (name: string, args: object) =>
    refusalOf(await agent.callTool({ name, arguments: { ...args } }));
  const key = newKey();
  await post("/v1/links", key, { url });
  t.like(await failure("create_link", { url, title: "x", idempotency_key: key }), REUSED);
  t.like(await failure("create_links", { links: [{ url }], idempotency_key: key }), REUSED);
  for (const wrong of ["", "a b", 5, null, "x".repeat(256)])
    t.like(await failure("create_link", { url, idempotency_key: wrong }), {
      status: 422,
      code: "invalid_idempotency_key",
    });
  t.like(await failure("update_link", { id: "lnk_x", idempotency_key: key }), { code: "unknown_field" });
  const free = newKey();
  t.like(await failure("create_link", { url: "nonsense", idempotency_key: free }), { code: "invalid_url" });
  t.is((await post("/v1/links", free, { url })).status, 201);
});
