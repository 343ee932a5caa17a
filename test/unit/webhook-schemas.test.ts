import test, { type ExecutionContext } from "ava";
import type { z } from "zod";
import { Problem } from "../../resources/http/problem.ts";
import { validate } from "../../resources/http/validate.ts";
import { eventQuery } from "../../resources/webhooks/event-list.ts";
import { deliveryQuery, webhookSchemas } from "../../resources/webhooks/schema.ts";

const { create, update } = webhookSchemas(new Set());
const HOOK = "https://example.com/hook";
const events = ["link.created"];

function isRefused(t: ExecutionContext, schema: z.ZodType, value: unknown, code: string, fields: string[]) {
  const problem = t.throws(() => validate(schema, value), { instanceOf: Problem });
  t.is(problem?.code, code);
  const named = problem?.toJSON().errors?.map(({ field }) => field);
  t.deepEqual(named?.sort(), fields.toSorted());
}

test("a webhook without a URL or events is rejected, unlike an update", (t) => {
  for (const [value, code, fields] of [
    [{}, "invalid_request", ["url", "events"]],
    [{ url: HOOK }, "invalid_events", ["events"]],
    [{ events }, "invalid_url", ["url"]],
  ] as [object, string, string[]][]) {
    isRefused(t, create, value, code, fields);
    t.deepEqual(validate(update, value), value);
  }
});

const INVALID: Record<string, object[]> = {
  events: [[], "link.created"].map((events) => ({ events })),
  "events.0": ["*", "plan.changed", "LINK.CREATED", 1].map((event) => ({ events: [event] })),
  "events.1": [{ events: ["link.created", "link.read"] }],
  enabled: ["yes", null].map((enabled) => ({ enabled })),
  url: [5, null, [HOOK], "https://10.0.0.1/"].map((url) => ({ url })),
};
const READ_ONLY = "id secret organization_id disabled_reason created_at plan __proto__x".split(" ");

test("an invalid or unknown field of a webhook is rejected by name, also in an update", (t) => {
  const areRefused = (value: object, code: string, invalid: string) => {
    isRefused(t, create, { url: HOOK, events, ...value }, code, [invalid]);
    isRefused(t, update, value, code, [invalid]);
  };
  for (const [invalid, values] of Object.entries(INVALID))
    for (const value of values) areRefused(value, `invalid_${invalid.split(".")[0]}`, invalid);
  for (const field of READ_ONLY) areRefused({ [field]: "whsec_AAAA" }, "unknown_field", field);
});

test("a webhook is enabled by default, and duplicate events count once", (t) => {
  const value = { url: HOOK, events: ["link.created", "link.created"] };
  t.deepEqual(validate(create, value), { url: HOOK, events, enabled: true });
});

const QUERIES: [query: object, code: string, field: string][] = [
  [{ limit: 101 }, "invalid_limit", "limit"],
  [{ type: [] }, "invalid_type", "type"],
  [{ type: ["link.clicked"] }, "invalid_type", "type.0"],
  [{ type: ["link.created", "webhook.test"] }, "invalid_type", "type.1"],
  [{ organization_id: "org_x" }, "unknown_field", "organization_id"],
];
test("an invalid or unknown parameter of a list of events or deliveries is rejected by name", (t) => {
  for (const [query, code, field] of QUERIES) isRefused(t, eventQuery, query, code, [field]);
  isRefused(t, deliveryQuery, { status: "lost" }, "invalid_status", ["status"]);
  isRefused(t, deliveryQuery, { event_type: "link" }, "invalid_event_type", ["event_type"]);
});
