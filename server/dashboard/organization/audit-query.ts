import { z } from "zod";
import type { AuditFilter } from "../../../adapters/events/audit-log.ts";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../../resources/events/delivered-events.ts";
import type { EventType } from "../../../resources/events/types.ts";
import { pageQuery } from "../../../resources/http/pagination.ts";
import { validate } from "../../../resources/http/validate.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

type AuditedType = Exclude<EventType, `operator.${string}` | "link.clicked" | "webhook.test">;

/** What the filter of the log calls its event types, in the words of their sentences. */
export const EVENT_NAMES: Record<AuditedType, string> = {
  "member.signed_in": "Signed in",
  "member.sign_in_failed": "Failed to sign in",
  "member.sign_in_throttled": "Blocked by the rate limit while signing in",
  "member.second_factor_failed": "Failed to prove a second factor",
  "member.reauthenticated": "Signed in again",
  "member.logged_out": "Signed out",
  "member.signed_out": "Signed a member out or revoked their apps",
  "member.session_ended": "Ended a session",

  "member.added": "Added a member or joined",
  "member.role_changed": "Changed a role",
  "member.removed": "Removed a member or left",
  "member.reset_link_created": "Created a password reset link",
  "member.password_changed": "Set a new password",
  "member.identity_linked": "Linked an SSO identity",
  "member.identity_unlinked": "Unlinked an SSO identity",
  "member.second_factor_added": "Added a second factor",
  "member.second_factor_removed": "Removed a second factor",
  "member.second_factors_reset": "Removed all second factors of a member",
  "member.recovery_codes_replaced": "Created recovery codes",
  "member.recovery_code_used": "Used a recovery code",
  "member.disabled": "Disabled an account",
  "member.enabled": "Enabled an account",
  "member.data_exported": "Exported account data",
  "invitation.created": "Created an invitation",
  "invitation.revoked": "Revoked an invitation",

  "authorization.granted": "Authorized an app",
  "authorization.revoked": "Revoked the access of an app",
  "app.approved": "Approved an app for members",
  "app.approval_withdrawn": "Withdrew the approval of an app",
  "client.created": "Created the client",
  "client.secret_rotated": "Rotated or created a client secret",
  "client.secret_ended": "Revoked a client secret",
  "client.secret_leaked": "Revoked a leaked client secret",
  "client.secrets_removed": "Removed all client secrets",
  "client.key_added": "Added a client key",
  "client.key_removed": "Removed a client key",
  "client.redirect_uris_changed": "Changed the redirect URIs",
  "client.profile_changed": "Changed the name or homepage of the client",
  "client.disabled": "Disabled the client",
  "client.enabled": "Enabled the client",
  "client.fapi_changed": "Turned the FAPI 2.0 Security Profile on or off",
  "trust_rule.created": "Added a trust rule",
  "trust_rule.deleted": "Deleted a trust rule",
  "token.leaked": "Revoked a leaked token",
  "token.replay_detected": "Detected that a code or token was replayed",

  "link.created": "Created a link",
  "link.updated": "Updated, archived or restored a link",
  "link.deleted": "Deleted a link",
  "link.disabled": "Disabled a link",
  "link.enabled": "Enabled a link",
  "links.imported": "Imported links",

  "webhook.created": "Created a webhook",
  "webhook.updated": "Updated a webhook",
  "webhook.deleted": "Deleted a webhook",
  "webhook.secret_rotated": "Rotated the signing secret of a webhook",
  "webhook.secret_viewed": "Viewed the signing secret of a webhook",
  "webhook.quota_reached": "Reached the daily quota of deliveries",
  "webhook.disabled": "Disabled a failing webhook",

  "organization.created": "Created the organization",
  "organization.renamed": "Renamed the organization",
  "organization.allowed_clients_changed": "Changed the app policy",
  "organization.member_apps_changed": "Changed which apps members may authorize",
  "organization.dpop_requirement_changed": "Started or stopped requiring DPoP",
  "organization.second_factor_required": "Started or stopped requiring a second factor",
  "organization.fallback_url_changed": "Changed or removed the fallback URL",
  "organization.suspended": "Suspended the organization",
  "organization.resumed": "Resumed the organization",
  "organization.deleted": "Deleted the organization",
  "plan.changed": "Changed the plan",
  "enterprise_authorization.changed": "Turned enterprise-managed authorization on or off",
  "audit_log.exported": "Exported the audit log",
};

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
  links: ["Links", "link"],
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

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const moment = z.string().transform((text, context) => {
  const at = Date.parse(text);
  if (Number.isNaN(at)) context.addIssue("must be a date or an RFC 3339 time, for example 2026-01-31");
  return { at, isDate: DATE.test(text) };
});
const idText = z.string().max(255, { error: "must be at most 255 characters" });
const querySchema = z.object({
  type: z.enum(AUDITED_TYPES, { error: "must be an event type of the audit log" }).optional(),
  category: z.enum(CATEGORY_NAMES, { error: `must be ${CATEGORY_NAMES.join(", ")}` }).optional(),
  actor: idText.optional(),
  client_id: idText.optional(),
  from: moment.optional(),
  to: moment.optional(),
  limit: z.preprocess((text) => (text === undefined ? text : Number(text)), pageQuery.shape.limit),
  cursor: pageQuery.shape.cursor,
  format: z.enum(["json", "csv"], { error: "must be json or csv" }).optional(),
});

export type AuditQuery = Awaited<ReturnType<typeof readAuditQuery>>;

/** `findActorId` resolves the username or ID of an actor. Throws Problem 422. */
export async function readAuditQuery(input: object, findActorId: (actor: string) => Promise<string>) {
  const query = validate(querySchema, withoutEmptyFields(input));
  const { type, category, actor, client_id: client, from, to, limit, cursor, format } = query;
  const filter: AuditFilter = {
    ...((type || category) && { types: typesOf(type, category) }),
    ...(actor && { actor: await findActorId(actor) }),
    ...(client && { client }),
    ...(from && { from: from.at }),
    // A date includes its whole day.
    ...(to && { to: to.isDate ? to.at + DAY_MS : to.at }),
  };
  return { filter, limit, cursor, format };
}

function typesOf(type: string | undefined, category: string | undefined): AuditedType[] {
  const isIn = (one: AuditedType) =>
    category === "changes" ? categoryOf(one) !== "sign_ins" : categoryOf(one) === category;
  return AUDITED_TYPES.filter((one) => (!type || one === type) && (!category || isIn(one)));
}

function withoutEmptyFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}
