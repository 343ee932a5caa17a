import type { AuditEntry } from "../../../adapters/audit.ts";
import { type EventType, OPERATOR } from "../../../resources/events.ts";
import { withoutImplied } from "../../../resources/scopes.ts";

type Data = Record<string, unknown>;
/** What somebody is called, by the id. */
type Name = (id: unknown) => string;

const SENTENCES: Record<EventType, (data: Data, name: Name) => string> = {
  "organization.created": ({ name, plan }) => `made the organization “${name}” on the plan ${plan}`,
  "organization.renamed": ({ from, to }) => `renamed the organization from “${from}” to “${to}”`,
  "organization.deleted": () => "deleted the organization",
  "plan.changed": ({ from, to }) => `changed the plan from ${from} to ${to}`,
  "member.added": ({ user_id, role }, name) => `added ${name(user_id)} as ${role}`,
  "member.role_changed": ({ user_id, from, to }, name) =>
    `changed the role of ${name(user_id)} from ${from} to ${to}`,
  "member.removed": ({ user_id, role }, name) => `removed ${name(user_id)}, who was ${role}`,
  "member.reset_link_created": ({ user_id }, name) =>
    `made a link that sets a new password for ${name(user_id)}`,
  "member.password_changed": ({ user_id, reset_link_created_by: creator }, name) =>
    `set a new password for ${name(user_id)}${creator ? `, using a reset link created by ${creatorOf(creator, name)}` : ""}`,
  "member.identity_linked": ({ user_id, issuer }, name) =>
    `let ${name(user_id)} sign in from ${issuer} as well`,
  "member.identity_unlinked": ({ user_id, issuer }, name) =>
    `let ${name(user_id)} no longer sign in from ${issuer}`,
  "invitation.created": ({ role }) => `made an invitation with the role ${role}`,
  "invitation.revoked": ({ role }) => `took an invitation with the role ${role} back`,
  "client.created": ({ client_id }) => `made the client ${client_id}`,
  "client.secret_rotated": ({ compromised, previous_expires_at }) =>
    compromised
      ? "made a new client secret and ended everything older, as compromised"
      : `made a new client secret; the one before is good until ${momentOf(previous_expires_at)}`,
  "client.secret_ended": ({ secret_id }) => `ended the client secret ${secret_id}`,
  "client.redirect_uris_changed": ({ redirect_uris }) => `set the redirect URIs to ${list(redirect_uris)}`,
  "authorization.granted": ({ client_id, scopes }, name) =>
    `allowed an app of ${name(client_id)}: ${list(withoutImplied(scopes as string[]))}`,
  "authorization.revoked": ({ client_id, user_id }, name) =>
    `ended what an app of ${name(client_id)} may do for ${name(user_id)}`,
  "link.created": (data) => `made the link ${slugOf(data)}`,
  "link.updated": (data) =>
    String(data.changed) === "archived"
      ? archivalOf(data)
      : `changed ${list(data.changed)} of the link ${slugOf(data)}`,
  "link.deleted": (data) => `deleted the link ${slugOf(data)}`,
  "link.clicked": (data) => `followed the link ${slugOf(data)}`,
  "webhook.created": ({ url }) => `made the webhook ${url ?? ""}`,
  "webhook.updated": ({ url }) => `changed the webhook ${url ?? ""}`,
  "webhook.deleted": ({ url }) => `deleted the webhook ${url ?? ""}`,
  "webhook.secret_rotated": ({ url }) => `made a new secret for the webhook ${url ?? ""}`,
  "webhook.disabled": ({ url, reason }) => `switched the webhook ${url ?? ""} off: ${reason ?? ""}`,
  "webhook.test": () => "tested a webhook",
};

/** What was done, as the rest of a sentence that begins with who did it. */
export function summaryOf({ type, data, names }: AuditEntry): string {
  // An entry of a newer version, read by an older one, is told by its type.
  const sentence = SENTENCES[type] ?? (() => type);
  return sentence(data, (id) => names.get(String(id)) ?? String(id)).trim();
}

/** Who did it: the person, the client, or the service itself. */
export function actorOf({ actor, via, names }: AuditEntry): string {
  const name = names.get(actor) ?? actor;
  if (via) return `${name}, by an app of ${names.get(via) ?? via}`;
  return actor.startsWith("lgc_") ? `the client of ${name}` : name;
}

/** Who created a reset link: a user, or the operator. */
function creatorOf(creator: unknown, name: Name): string {
  return creator === OPERATOR.actor ? "the operator" : name(creator);
}

function list(value: unknown): string {
  return Array.isArray(value) && value.length > 0 ? value.join(", ") : "nothing";
}

function archivalOf(data: Data): string {
  const { archived } = (data.link ?? {}) as { archived?: boolean };
  return archived ? `archived the link ${slugOf(data)}` : `put the link ${slugOf(data)} to use again`;
}

function momentOf(time: unknown): string {
  return `${String(time).slice(0, 16).replace("T", " ")} UTC`;
}

function slugOf({ link }: Data): string {
  return `/${(link as { slug?: string } | undefined)?.slug ?? ""}`;
}
