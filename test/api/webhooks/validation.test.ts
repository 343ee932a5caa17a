import test from "ava";
import { isMissing, isProblem, newApi } from "../../harness/clients/api.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";
import type { NewWebhookBody, WebhookBody, WebhookPage } from "../../harness/webhooks.ts";
import { createWebhook, uniqueUrl } from "../../harness/webhooks.ts";

export const databases = "all";

const service = await startTestService();

const HOOK = "https://example.com/hook";
const tagOf = ({ headers }: { headers: Headers }) => headers.get("etag") ?? "";

test("a webhook is created with the submitted fields and returned with them", async (t) => {
  const api = await newApi(service);
  const events = ["link.deleted", "link.created", "webhook.test"];
  const { status, headers, body } = await api.send<NewWebhookBody>("POST", "/v1/webhooks", {
    json: { url: HOOK, events },
  });
  t.is(status, 201);
  t.is(headers.get("location"), `/v1/webhooks/${body.id}`);
  const { secret, ...webhook } = body;
  const fields = "id url events enabled verified created_at updated_at created_by created_via";
  t.deepEqual(Object.keys(webhook), fields.split(" "));
  t.like(webhook, { url: HOOK, events, enabled: true, updated_at: webhook.created_at });
  t.regex(webhook.created_by ?? "", /^lgc_/);
  t.is(webhook.created_via, null);
  t.regex(webhook.id, /^whk_[0-9A-Z]{26}$/);
  t.deepEqual((await api.get<WebhookBody>(`/v1/webhooks/${webhook.id}`)).body, webhook);
  t.deepEqual((await api.get<WebhookPage>("/v1/webhooks")).body, { data: [webhook], next_cursor: null });
});

test("an update keeps all other fields and changes the ETag, unless nothing changes", async (t) => {
  const api = await newApi(service);
  const { id } = await createWebhook(api, HOOK);
  const path = `/v1/webhooks/${id}`;
  const change = (json: object) => api.send<WebhookBody>("PATCH", path, { json });
  for (const json of [
    { url: "https://example.org/other" },
    { events: ["link.clicked", "authorization.granted"] },
    { enabled: false },
    { url: "https://example.org/more", enabled: true },
  ]) {
    const before = await api.get<WebhookBody>(path);
    const updated = await change(json);
    t.is(updated.status, 200);
    const { body } = updated;
    t.deepEqual<unknown, unknown>(body, { ...before.body, ...json, updated_at: body.updated_at });
    t.regex(tagOf(updated), /^"[^"]+"$/);
    t.not(tagOf(updated), tagOf(before));
    for (const reply of [await api.get<WebhookBody>(path), await change(json), await change({})])
      t.deepEqual([reply.body, tagOf(reply)], [body, tagOf(updated)]);
    t.is((await api.get(path, { "if-none-match": tagOf(updated) })).status, 304);
    t.is((await api.get(path, { "if-none-match": tagOf(before) })).status, 200);
  }
});

test("an invalid field or URL creates and changes nothing", async (t) => {
  const api = await newApi(service);
  const { secret, ...created } = await createWebhook(api, HOOK);
  const path = `/v1/webhooks/${created.id}`;
  for (const [fields, code] of [
    [{ url: "https://10.0.0.1/" }, "invalid_url"],
    [{ url: "http://example.com/" }, "invalid_url"],
    [{ events: ["*"] }, "invalid_events"],
    [{ secret: "whsec_AAAA" }, "unknown_field"],
  ] as const) {
    const json = { url: uniqueUrl(), events: ["link.created"], ...fields };
    for (const reply of [
      await api.send("POST", "/v1/webhooks", { json }),
      await api.send("PATCH", path, { json: fields }),
    ])
      t.deepEqual([reply.status, reply.body.code], [422, code]);
  }
  t.deepEqual((await api.get<WebhookPage>("/v1/webhooks")).body.data, [created]);
});

test("If-Match with an earlier tag fails and changes nothing, and with the current one succeeds", async (t) => {
  const api = await newApi(service);
  const { id } = await createWebhook(api, HOOK);
  const path = `/v1/webhooks/${id}`;
  const old = tagOf(await api.get(path));
  await api.send("POST", `${path}/rotate-secret`);
  const before = await api.get(path);
  t.not(tagOf(before), old, "a new secret changes it");
  const json = { events: ["link.updated"] };
  const stale = { headers: { "if-match": old } };
  for (const reply of [
    await api.send("PATCH", path, { json, ...stale }),
    await api.send("DELETE", path, stale),
  ]) {
    isProblem(t, reply, { status: 412, code: "precondition_failed" });
    t.is(reply.body.detail, "The webhook has changed since you last read it. Read it again and retry.");
  }
  t.deepEqual((await api.get(path)).body, before.body);
  const updated = await api.send("PATCH", path, { json, headers: { "if-match": tagOf(before) } });
  t.is(updated.status, 200);
  t.is((await api.send("DELETE", path, { headers: { "if-match": tagOf(updated) } })).status, 204);
  isMissing(t, await api.send("DELETE", path, { headers: { "if-match": "*" } }));
});

test("of 20 simultaneous updates with the same If-Match, one succeeds", async (t) => {
  const api = await newApi(service);
  const { id } = await createWebhook(api, HOOK);
  const path = `/v1/webhooks/${id}`;
  const headers = { "if-match": tagOf(await api.get(path)) };
  const replies = await atOnce(20, (index) =>
    api.send("PATCH", path, { json: { url: `https://race.example/${index}` }, headers }),
  );
  t.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(19).fill(412)]);
});
