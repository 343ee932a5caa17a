/** What webhooks can be told of. */
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

/** What only the audit log tells. */
export const AUDIT_EVENTS = [
  "organization.created",
  "organization.renamed",
  "organization.deleted",
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
  "client.redirect_uris_changed",
  "webhook.created",
  "webhook.updated",
  "webhook.deleted",
  "webhook.secret_rotated",
  "webhook.disabled",
] as const;

export type EventType = WebhookEvent | (typeof AUDIT_EVENTS)[number];

/** Who did something, and from where; written down with what was done. */
export type By = {
  /** `usr_…` a person, `lgc_…` a client by itself, `operator` the administration command, `system` the service. */
  actor: string;
  /** The client that acts for the person. */
  via?: string;
  /** The address that the request came from. */
  address?: string;
};

/** Whoever runs the service, by the administration command. */
export const OPERATOR: By = { actor: "operator" };
/** The service, of its own accord. */
export const SYSTEM: By = { actor: "system" };
