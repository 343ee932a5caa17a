import test from "ava";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../resources/events/delivered-events.ts";
import { validate } from "../../resources/http/validate.ts";
import { continuesAction } from "../../server/dashboard/organization/audit.ts";
import { auditQuery, EVENT_GROUPS, eventName, filterOf } from "../../server/operations/audit-query.ts";
import { DAY_MS } from "../harness/clock.ts";

const INVALID: Record<string, unknown[]> = {
  ...{ type: ["link.clicked", "everything"], category: ["everything"], limit: [0, 101, "many"] },
  ...{ actor: ["x".repeat(256)], client_id: ["x".repeat(256)], from: ["yesterday"], to: ["2026-13-01"] },
};

test("a query with an invalid value is rejected by its field", (t) => {
  for (const [field, values] of Object.entries(INVALID))
    for (const value of values)
      t.throws(() => validate(auditQuery, { [field]: value }), { code: `invalid_${field}` }, String(value));
});

const JANUARY_1 = Date.UTC(2026, 0, 1);

test("a date includes its whole day, and a time is exact", (t) => {
  const days = validate(auditQuery, { from: "2026-01-01", to: "2026-01-01" });
  t.deepEqual(filterOf(days), { from: JANUARY_1, to: JANUARY_1 + DAY_MS });
  const time = validate(auditQuery, { to: "2026-01-01T00:00:00Z" });
  t.deepEqual(filterOf(time), { to: JANUARY_1 });
});

test("an event type and a category narrow the log together", (t) => {
  const typesOf = (query: object) => filterOf(validate(auditQuery, query)).types;
  t.deepEqual(typesOf({ type: "plan.changed", category: "organization" }), ["plan.changed"]);
  t.deepEqual(typesOf({ type: "plan.changed", category: "links" }), []);
  t.false(typesOf({ category: "changes" })?.includes("member.signed_in"));
  t.true(typesOf({ category: "sign_ins" })?.includes("member.signed_in"));
});

test("the filter names each audited event in words, in groups", (t) => {
  t.is(
    EVENT_GROUPS.map(([label]) => label).join("; "),
    "Sign-ins and sessions; Members and invitations; Apps, clients and tokens; Links and domains; Webhooks; Organization and plan",
  );
  const types = EVENT_GROUPS.flatMap(([, types]) => types);
  const delivered = WEBHOOK_EVENTS.filter((type) => type !== "link.clicked" && type !== "webhook.test");
  t.deepEqual(types.toSorted(), [...AUDIT_EVENTS, ...delivered].toSorted());
  const names = types.map(eventName);
  t.is(new Set(names).size, names.length);
  for (const name of names) t.regex(name, /^[A-Z][A-Za-z0-9 ,.-]+$/);
  t.is(eventName("client.redirect_uris_changed"), "Client redirect URIs changed");
  t.true(EVENT_GROUPS[0]?.[1].includes("member.logged_out"));
});

const CREATED = { type: "link.created", at: 0, actor: "usr_1", via: null, address: null, data: {} } as const;
const archived = (isArchived: boolean) => ({
  ...{ ...CREATED, type: "link.updated" as const },
  data: { changed: ["archived"], link: { archived: isArchived } },
});

test("changes of links by one actor are one line, if they did the same and are at most an hour apart", (t) => {
  const HOUR_MS = 60 * 60 * 1000;
  t.true(continuesAction(CREATED, { ...CREATED, at: -HOUR_MS }));
  t.true(continuesAction(archived(true), archived(true)));
  const renamed = { ...CREATED, type: "organization.renamed" as const };
  for (const [newer, older] of [
    [CREATED, { ...CREATED, at: -HOUR_MS - 1 }],
    [CREATED, { ...CREATED, actor: "usr_2" }],
    [CREATED, { ...CREATED, via: "lgc_1" }],
    [CREATED, { ...CREATED, address: "::1" }],
    [CREATED, { ...CREATED, type: "link.deleted" as const }],
    [archived(true), archived(false)],
    [renamed, renamed],
  ] as const)
    t.false(continuesAction(newer, older));
});
