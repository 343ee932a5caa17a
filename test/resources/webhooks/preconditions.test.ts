import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";
import type { WebhookBody } from "../../harness/webhooks.ts";

export const databases = "all";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization("premium")));
test.after.always(() => service.close());

const tagOf = ({ headers }: { headers: Headers }) => headers.get("etag") ?? "";

let count = 0;
async function createWebhook() {
  const json = { url: `https://hooks.example/${++count}`, events: ["link.created"], enabled: false };
  const created = await api.send<WebhookBody>("POST", "/v1/webhooks", { json });
  return { created, path: `/v1/webhooks/${created.body.id}` };
}

/** Creates and updates a webhook; returns its previous and its current entity tag. */
async function createUpdatedWebhook() {
  const { created, path } = await createWebhook();
  const reply = await api.send("PATCH", path, { json: { events: ["link.deleted"] } });
  return { path, old: tagOf(created), current: tagOf(reply) };
}

test("every update changes the strong ETag, which POST, PATCH and GET return", async (t) => {
  const { path, old, current } = await createUpdatedWebhook();
  t.regex(old, /^"[^"]+"$/);
  t.regex(current, /^"[^"]+"$/);
  t.not(current, old);
  t.is(tagOf(await api.get(path)), current);
  t.is(tagOf(await api.send("HEAD", path)), current);
  const again = await api.send("PATCH", path, { json: { events: ["link.deleted"] } });
  t.is(tagOf(again), current, "an update that changes nothing keeps it");
});

test("a new secret changes the ETag", async (t) => {
  const { path, current } = await createUpdatedWebhook();
  await api.send("POST", `${path}/rotate-secret`);
  t.not(tagOf(await api.get(path)), current);
});

test("GET with If-None-Match and the current tag is 304, and with another tag 200", async (t) => {
  const { path, old, current } = await createUpdatedWebhook();
  t.is((await api.get(path, { "if-none-match": current })).status, 304);
  t.is((await api.get(path, { "if-none-match": old })).status, 200);
});

const failing: [name: string, value: (tags: { old: string; current: string }) => string][] = [
  ["the tag of an earlier version", ({ old }) => old],
  ["the current tag without quotes", ({ current }) => current.replaceAll('"', "")],
  ["the current tag as a weak tag", ({ current }) => `W/${current}`],
  ["several outdated and unknown tags", ({ old }) => `${old}, "x"`],
];
for (const [name, value] of failing) {
  test(`If-Match with ${name} fails and changes nothing`, async (t) => {
    const { path, ...tags } = await createUpdatedWebhook();
    const before = await api.get(path);
    for (const [method, json] of [
      ["PATCH", { events: ["link.updated"] }],
      ["DELETE", undefined],
    ] as const) {
      const reply = await api.send(method, path, { json, headers: { "if-match": value(tags) } });
      isProblem(t, reply, { status: 412, code: "precondition_failed" });
      t.is(reply.body.detail, "The webhook has changed since you last read it. Read it again and retry.");
    }
    t.deepEqual((await api.get(path)).body, before.body);
  });
}

for (const [name, value] of [
  ["the current tag", (current: string) => current],
  ["several tags, of which one is current", (current: string) => `"x", ${current}`],
  ["a star", () => "*"],
] as const) {
  test(`If-Match with ${name} succeeds`, async (t) => {
    const { path, current } = await createUpdatedWebhook();
    const headers = { "if-match": value(current) };
    const updated = await api.send("PATCH", path, { json: { events: ["link.updated"] }, headers });
    t.is(updated.status, 200);
    const removed = await api.send("DELETE", path, { headers: { "if-match": value(tagOf(updated)) } });
    t.is(removed.status, 204);
  });
}

test("a webhook that doesn't exist is 404, also with If-Match", async (t) => {
  for (const tag of ["*", '"x"']) {
    const headers = { "if-match": tag };
    isMissing(t, await api.send("PATCH", "/v1/webhooks/whk_unknown", { json: {}, headers }));
    isMissing(t, await api.send("DELETE", "/v1/webhooks/whk_unknown", { headers }));
  }
});

test("of 20 simultaneous updates with the same If-Match, one succeeds", async (t) => {
  const { created, path } = await createWebhook();
  const headers = { "if-match": tagOf(created) };
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      api.send("PATCH", path, { json: { url: `https://race.example/${index}` }, headers }),
    ),
  );
  t.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(19).fill(412)]);
});
