import { z } from "zod";
import type { AuditFilter } from "../../adapters/events/audit-log.ts";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../resources/events/delivered-events.ts";
import type { EventType } from "../../resources/events/types.ts";
import { pageQuery } from "../../resources/http/pagination.ts";
import { capitalized } from "../ui/text.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

export type AuditedType = Exclude<EventType, `operator.${string}` | "link.clicked" | "webhook.test">;

const AUDITED_TYPES = [...AUDIT_EVENTS, ...WEBHOOK_EVENTS].filter(
  (type): type is AuditedType => type !== "link.clicked" && type !== "webhook.test",
);

/** What the log can be narrowed to: the label of a category, and how its event types begin. The first match counts. */
const CATEGORIES: Record<string, [label: string, ...prefixes: string[]]> = {
  sign_ins: [
    "Sign-ins and sessions",
    "member.sign",
    "member.session",
    "member.reauth",
    "member.logged",
    "member.second_factor_failed",
  ],
  members: ["Members and invitations", "member.", "invitation."],
  access: ["Apps, clients and tokens", "app.", "authorization.", "token.", "client.", "trust_rule."],
  links: ["Links and domains", "link", "domain."],
  webhooks: ["Webhooks", "webhook."],
  organization: [
    "Organization and plan",
    "organization.",
    "plan.",
    "enterprise_authorization.",
    "audit_log.",
  ],
};
const CATEGORY_NAMES = ["changes", ...Object.keys(CATEGORIES)];

export const CATEGORY_OPTIONS = [
  ["changes", "Everything except sign-ins"],
  ...Object.entries(CATEGORIES).map(([name, [label]]) => [name, label] as const),
] as const;

/** The event types in groups: the label of a category → the types that it contains. */
export const EVENT_GROUPS: readonly (readonly [label: string, types: AuditedType[]])[] = Object.entries(
  CATEGORIES,
).map(([name, [label]]) => [label, AUDITED_TYPES.filter((type) => categoryOf(type) === name)]);

/** What was changed, without who signed in. */
export const CHANGE_TYPES: readonly string[] = typesOf(undefined, "changes");

function categoryOf(type: AuditedType): string | undefined {
  const matches = ([, [, ...prefixes]]: [string, string[]]) => prefixes.some((one) => type.startsWith(one));
  return Object.entries(CATEGORIES).find(matches)?.[0];
}

const SPELLINGS: Record<string, string> = { dpop: "DPoP", fapi: "FAPI", uris: "URIs", url: "URL" };

/** Where the words of a type would say too little. */
const NAMES: Partial<Record<AuditedType, string>> = {
  "client.fapi_changed": "FAPI 2.0 turned on or off",
  "client.secret_ended": "Client secret revoked",
  "client.secret_rotated": "Client secret rotated or created",
  "link.updated": "Link updated, archived or restored",
  "member.logged_out": "Member signed out",
  "member.reauthenticated": "Member signed in again",
  "member.second_factor_failed": "Second factor failed",
  "member.sign_in_failed": "Sign-in failed",
  "member.sign_in_throttled": "Sign-in blocked by the rate limit",
  "member.signed_out": "Member signed out by someone else, or apps revoked",
  "organization.allowed_clients_changed": "App policy changed",
  "organization.second_factor_required": "Second factor requirement changed",
};

/** Returns what the filter calls an event type: `client.redirect_uris_changed` → `Client redirect URIs changed`. */
export function eventName(type: AuditedType): string {
  const words = type.replaceAll(/[a-z]+/g, (word) => SPELLINGS[word] ?? word).replaceAll(/[._]/g, " ");
  return NAMES[type] ?? capitalized(words);
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const moment = z.string().transform((text, context) => {
  const at = Date.parse(text);
  if (Number.isNaN(at)) context.addIssue("must be a date or an RFC 3339 time, for example 2026-01-31");
  return { at, isDate: DATE.test(text) };
});
const idText = z.string().max(255, { error: "must be at most 255 characters" });
export const auditQuery = z.strictObject({
  type: z.enum(AUDITED_TYPES, "must be an event type of the audit log").optional().describe("What happened."),
  category: z
    .enum(CATEGORY_NAMES, `must be ${CATEGORY_NAMES.join(", ")}`)
    .optional()
    .describe("A group of types."),
  actor: idText.optional().describe("The username or ID of who did it."),
  client_id: idText.optional().describe("The app that did it, for a user or on its own."),
  from: moment.optional().describe("The first day, or RFC 3339 time."),
  to: moment.optional().describe("The last day, or the RFC 3339 time before which it happened."),
  part: z
    .string()
    .regex(/^\w{1,64}\.\.\w{1,64}$/, "must be two IDs, for example evt_2..evt_1")
    .optional()
    .describe("The IDs of the newest and the oldest entry, joined by two periods."),
  ...pageQuery.shape,
});

export type AuditQuery = z.output<typeof auditQuery>;

/** Returns the filter of a query, without its actor. */
export function filterOf({ type, category, client_id, from, to, part }: Partial<AuditQuery>): AuditFilter {
  return {
    ...((type || category) && { types: typesOf(type, category) }),
    ...(client_id && { client: client_id }),
    ...(part && { part }),
    ...(from && { from: from.at }),
    // A date includes its whole day.
    ...(to && { to: to.isDate ? to.at + DAY_MS : to.at }),
  };
}

function typesOf(type: string | undefined, category: string | undefined): AuditedType[] {
  const isIn = (one: AuditedType) =>
    category === "changes" ? categoryOf(one) !== "sign_ins" : categoryOf(one) === category;
  return AUDITED_TYPES.filter((one) => (!type || one === type) && (!category || isIn(one)));
}
