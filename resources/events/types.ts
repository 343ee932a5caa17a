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
  "webhook.test",
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** The event types that only the audit log contains. */
export const AUDIT_EVENTS = [
  "organization.created",
  "organization.renamed",
  "organization.allowed_clients_changed",
  "organization.dpop_requirement_changed",
  "organization.deleted",
  "enterprise_authorization.changed",
  "plan.changed",
  "member.added",
  "member.role_changed",
  "member.removed",
  "member.reset_link_created",
  "member.password_changed",
  "member.identity_linked",
  "member.identity_unlinked",
  "invitation.created",
  "invitation.revoked",
  "client.created",
  "client.secret_ended",
  "client.secrets_removed",
  "client.key_added",
  "client.key_removed",
  "client.redirect_uris_changed",
  "trust_rule.created",
  "trust_rule.deleted",
  "webhook.created",
  "webhook.updated",
  "webhook.deleted",
  "webhook.secret_rotated",
  "webhook.secret_viewed",
  "webhook.disabled",
] as const;

export type EventType = WebhookEvent | (typeof AUDIT_EVENTS)[number];
/** The operator of the service, using the administration command. */
export const OPERATOR: Actor = { id: "operator" };
/** The service itself. */
export const SYSTEM: Actor = { id: "system" };
