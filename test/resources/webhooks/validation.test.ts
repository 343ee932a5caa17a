import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type NewWebhookBody,
  type WebhookBody,
  type WebhookPage,
} from "../../harness/webhooks.ts";

const service = await startTestService();
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => service.close());

const HOOK = "https://example.com/hook";

test("a webhook is created with the submitted fields and returned with them", async (t) => {
  const api = await createApi();
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

test("duplicate events are stored once", async (t) => {
  const { events } = await createWebhook(await createApi(), HOOK, ["link.created", "link.created"]);
  t.deepEqual(events, ["link.created"]);
});

const CHANGES: [name: string, json: Partial<WebhookBody>][] = [
  ["URL", { url: "https://example.org/other" }],
  ["events", { events: ["link.clicked", "authorization.granted"] }],
  ["status", { enabled: false }],
  ["URL and status", { url: "https://example.org/other", enabled: false }],
];
for (const [name, json] of CHANGES) {
  test(`updating the ${name} keeps all other fields`, async (t) => {
    const api = await createApi();
    const { secret, ...created } = await createWebhook(api, HOOK);
    const path = `/v1/webhooks/${created.id}`;
    const { status, body } = await api.send<WebhookBody>("PATCH", path, { json });
    t.is(status, 200);
    t.deepEqual(body, { ...created, ...json, updated_at: body.updated_at });
    t.deepEqual((await api.get<WebhookBody>(path)).body, body);
    t.deepEqual(
      (await api.send<WebhookBody>("PATCH", path, { json })).body,
      body,
      "the same update changes nothing",
    );
    t.deepEqual((await api.send<WebhookBody>("PATCH", path, { json: {} })).body, body);
  });
}

const REFUSALS: [name: string, json: unknown, code: string, fields: string[]][] = [
  ["an empty body", {}, "invalid_request", ["url", "events"]],
  ["no events", { url: HOOK }, "invalid_events", ["events"]],
  ["an empty list of events", { url: HOOK, events: [] }, "invalid_events", ["events"]],
  ["an unknown event", { url: HOOK, events: ["link.created", "link.read"] }, "invalid_events", ["events.1"]],
  ["a wildcard event", { url: HOOK, events: ["*"] }, "invalid_events", ["events.0"]],
  ["an event of the audit log", { url: HOOK, events: ["plan.changed"] }, "invalid_events", ["events.0"]],
  ["an event in capitals", { url: HOOK, events: ["LINK.CREATED"] }, "invalid_events", ["events.0"]],
  ["a string for the events", { url: HOOK, events: "link.created" }, "invalid_events", ["events"]],
  ["an event that is a number", { url: HOOK, events: [1] }, "invalid_events", ["events.0"]],
  ["no URL", { events: ["link.created"] }, "invalid_url", ["url"]],
  [
    "a string for enabled",
    { url: HOOK, events: ["link.created"], enabled: "yes" },
    "invalid_enabled",
    ["enabled"],
  ],
  [
    "null for enabled",
    { url: HOOK, events: ["link.created"], enabled: null },
    "invalid_enabled",
    ["enabled"],
  ],
  ...["id", "secret", "organization_id", "disabled_reason", "created_at", "plan", "__proto__x"].map(
    (field): [string, unknown, string, string[]] => [
      `the field ${field}`,
      { url: HOOK, events: ["link.created"], [field]: "whsec_AAAA" },
      "unknown_field",
      [field],
    ],
  ),
];
for (const [name, json, code, fields] of REFUSALS) {
  test(`${name} is rejected with ${code} and creates no webhook`, async (t) => {
    const api = await createApi();
    isProblem(t, await api.send("POST", "/v1/webhooks", { json }), { status: 422, code, fields });
    t.deepEqual((await api.get<WebhookPage>("/v1/webhooks")).body.data, []);
  });

  if (!/^(no |an empty body)/.test(name)) {
    test(`${name} is rejected with ${code} in an update and changes nothing`, async (t) => {
      const api = await createApi();
      const { secret, ...created } = await createWebhook(api, "https://example.org/");
      const path = `/v1/webhooks/${created.id}`;
      isProblem(t, await api.send("PATCH", path, { json }), { status: 422, code, fields });
      t.deepEqual((await api.get<WebhookBody>(path)).body, created);
    });
  }
}
