import type { Actor } from "../access/actor.ts";

/** The event types that webhooks can subscribe to. */
export const WEBHOOK_EVENTS = [
  "link.created",
  "link.updated",
  "link.deleted",
  "link.clicked",
  "client.secret_rotated",
  "authorization.granted",
  "authorization.revoked",
  "token.replay_detected",
  "webhook.test",
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** The event types that only the audit log contains. */
export const AUDIT_EVENTS = [
  "organization.created",
  "organization.renamed",
  "organization.allowed_clients_changed",
  "organization.member_apps_changed",
  "organization.dpop_requirement_changed",
  "organization.second_factor_required",
  "organization.suspended",
  "organization.resumed",
  "organization.deleted",
  "audit_log.exported",
  "enterprise_authorization.changed",
  "plan.changed",
  "member.added",
  "member.role_changed",
  "member.removed",
  "member.reset_link_created",
  "member.password_changed",
  "member.identity_linked",
  "member.identity_unlinked",
  "member.second_factor_added",
  "member.second_factor_removed",
  "member.second_factors_reset",
  "member.recovery_codes_replaced",
  "member.recovery_code_used",
  "member.disabled",
  "member.enabled",
  "member.signed_out",
  "member.signed_in",
  "member.sign_in_failed",
  "member.sign_in_throttled",
  "member.second_factor_failed",
  "member.reauthenticated",
  "member.logged_out",
  "member.session_ended",
  "member.data_exported",
  "invitation.created",
  "invitation.revoked",
  "app.approved",
  "app.approval_withdrawn",
  "client.created",
  "client.secret_ended",
  "client.secret_leaked",
  "client.secrets_removed",
  "client.key_added",
  "client.key_removed",
  "client.redirect_uris_changed",
  "client.disabled",
  "client.enabled",
  "token.leaked",
  "trust_rule.created",
  "trust_rule.deleted",
  "link.disabled",
  "link.enabled",
  "webhook.created",
  "webhook.updated",
  "webhook.deleted",
  "webhook.secret_rotated",
  "webhook.secret_viewed",
  "webhook.disabled",
  "webhook.quota_reached",
] as const;

/** The event types of the operator's log, which belongs to no organization. */
export const OPERATOR_EVENTS = ["operator.command_started", "operator.command_finished"] as const;

export type EventType = WebhookEvent | (typeof AUDIT_EVENTS)[number] | (typeof OPERATOR_EVENTS)[number];
/** The operator of the service, using the administration command. */
export const OPERATOR: Actor = { id: "operator" };
/** Someone who isn't signed in. */
export const ANONYMOUS: Actor = { id: "anonymous" };
/** The service itself. */
export const SYSTEM: Actor = { id: "system" };
