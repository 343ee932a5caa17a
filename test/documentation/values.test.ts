import test from "ava";
import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../../resources/access/scopes.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/events/delivered-events.ts";
import { analyticsSchema } from "../../resources/links/analytics.ts";
import { linkSchema } from "../../resources/links/schema.ts";
import { AUDIT_LOG_DAYS, limitsOf, PLANS, type Plan } from "../../resources/plans.ts";
import { RETRY_DELAYS_MS } from "../../resources/webhooks/retry-policy.ts";
import { dataSize } from "../../server/dashboard/organization/plan.ts";
import { auditRetentionOf } from "../../server/settings/audit-retention.ts";
import { tableIn } from "../harness/documentation.ts";
import { blocksOf } from "../harness/examples.ts";

function jsonIn(document: string, heading: string) {
  const json = blocksOf(document).find((block) => block.language === "json" && block.heading === heading);
  return JSON.parse(json?.code ?? "");
}

const number = (value: number) => (value === 0 ? "–" : value.toLocaleString("en"));
const ofPlans = (show: (plan: Plan) => string) => PLANS.map(show);

test("each limit of each plan is documented", (t) => {
  t.is(tableIn("rate-limits.md", "Limits of your plan").length, Object.keys(limitsOf("growth")).length + 1);
  t.deepEqual(tableIn("rate-limits.md", "Limits of your plan"), [
    ["Requests per minute", ...ofPlans((plan) => number(limitsOf(plan).requests_per_minute))],
    ["Links per bulk request", ...ofPlans((plan) => number(limitsOf(plan).links_per_bulk))],
    ["Webhooks", ...ofPlans((plan) => number(limitsOf(plan).webhooks))],
    ["Webhook deliveries per day", ...ofPlans((plan) => number(limitsOf(plan).deliveries_per_day))],
    ["Domains", ...ofPlans((plan) => number(limitsOf(plan).domains))],
    ["Links", ...ofPlans((plan) => number(limitsOf(plan).links))],
    ["Link data", ...ofPlans((plan) => dataSize(limitsOf(plan).link_bytes))],
    ["Members", ...ofPlans((plan) => number(limitsOf(plan).members))],
    ["Days in the audit log", ...ofPlans((plan) => number(AUDIT_LOG_DAYS[plan]))],
  ]);
});

test("each scope is documented", (t) => {
  const scopes = API_SCOPES.map((scope) => [`\`${scope}\``, SCOPE_DESCRIPTIONS[scope]]);
  t.deepEqual(tableIn("authentication.md", "Scopes"), scopes);
});

test("each event is documented", (t) => {
  const events = WEBHOOK_EVENT_SCHEMAS.map(({ event, meaning }) => [`\`${event}\``, meaning]);
  t.deepEqual(tableIn("webhooks.md", "Events"), events);
});

test("the example of an event has a valid body", (t) => {
  const body = jsonIn("docs/webhooks.md", "Events");
  const schema = WEBHOOK_EVENT_SCHEMAS.find(({ event }) => event === body.type)?.body;
  t.deepEqual(schema?.parse(body) as unknown, body);
});

test("the example of analytics has every field, and numbers that add up", (t) => {
  const example = jsonIn("docs/analytics.md", "Read the analytics");
  t.deepEqual(analyticsSchema.parse(example) as unknown, example);
  const { time_zone: _, clicks, bot_clicks, days, ...byName } = analyticsSchema.parse(example);
  const sum = (counts: number[] = []) => counts.reduce((total, one) => total + one, 0);
  for (const counts of [days, ...Object.values(byName)]) t.is(sum(counts?.map((one) => one.clicks)), clicks);
  t.is(sum(days.map((one) => one.bot_clicks)), bot_clicks);
});

test("the example of a link has fields of the API", (t) => {
  const example = jsonIn("docs/quick-start.md", "Create a link");
  const shown = linkSchema.pick(
    Object.fromEntries(Object.keys(example).map((name) => [name, true])) as { id: true },
  );
  t.deepEqual(shown.parse(example) as unknown, example);
});

test("the schedule of retries is documented", (t) => {
  const units = Object.entries({ hours: 3_600_000, minutes: 60_000, seconds: 1000 });
  const delays = RETRY_DELAYS_MS.map((delay, index) => {
    const [unit, ms] = units.find(([, ms]) => delay >= ms) ?? ["milliseconds", 1];
    return [String(index + 2), `${delay / ms} ${unit}`];
  });
  t.deepEqual(tableIn("webhooks.md", "Delivery and retries"), delays);
});

test("the retention of each plan is documented", (t) => {
  const plans = PLANS.map((plan) => [plan.charAt(0).toUpperCase() + plan.slice(1), auditRetentionOf(plan)]);
  t.deepEqual(tableIn("audit-log.md", "Retention"), plans);
});
