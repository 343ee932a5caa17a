import type { AuditEntry } from "../../../adapters/events/audit-log.ts";
import { withoutImplied } from "../../../resources/access/scopes.ts";
import { type EventType, OPERATOR } from "../../../resources/events/types.ts";
import { identityOf } from "../../clients/client-identity.ts";
import { formatTime } from "../../ui/controls.ts";

type Data = Record<string, unknown>;
type Entry = {
  data: Data;
  actor: string;
  /** Returns the name of a user or of a client's organization, or the ID if it has none. */
  name: (id: unknown) => string;
  /** Returns how a sentence calls a client. */
  app: (id: unknown) => string;
};

const SENTENCES: Record<EventType, (entry: Entry) => string> = {
  "organization.created": ({ data }) =>
    `created organization “${data.name}” on the ${planName(data.plan)} plan`,
  "organization.renamed": ({ data }) => `renamed the organization from “${data.from}” to “${data.to}”`,
  "organization.allowed_clients_changed": ({ data }) =>
    `changed which apps members may connect from ${data.from} to ${data.to}`,
  "organization.dpop_requirement_changed": ({ data }) =>
    data.required ? "required DPoP for API and MCP tokens" : "stopped requiring DPoP for API and MCP tokens",
  "organization.deleted": () => "deleted the organization",
  "enterprise_authorization.changed": ({ data }) =>
    `turned enterprise-managed authorization ${data.enabled ? "on" : "off"}`,
  "plan.changed": ({ data }) => `changed the plan from ${planName(data.from)} to ${planName(data.to)}`,
  "member.added": ({ data, actor, name }) =>
    data.user_id === actor ? `joined as ${data.role}` : `added ${name(data.user_id)} as ${data.role}`,
  "member.role_changed": ({ data, name }) =>
    `changed the role of ${name(data.user_id)} from ${data.from} to ${data.to}`,
  "member.removed": ({ data, actor, name }) =>
    data.user_id === actor
      ? `left the organization (role: ${data.role})`
      : `removed ${name(data.user_id)} (role: ${data.role})`,
  "member.reset_link_created": ({ data, name }) => `created a password reset link for ${name(data.user_id)}`,
  "member.password_changed": ({ data, name }) =>
    `set a new password for ${name(data.user_id)}${resetLinkOf(data, name)}`,
  "member.identity_linked": ({ data, name }) =>
    `linked an SSO identity of ${data.issuer} to ${name(data.user_id)}`,
  "member.identity_unlinked": ({ data, name }) =>
    `unlinked an SSO identity of ${data.issuer} from ${name(data.user_id)}`,
  "invitation.created": ({ data }) => `created an invitation with the role ${data.role}`,
  "invitation.revoked": ({ data }) => `revoked an invitation with the role ${data.role}`,
  "client.created": ({ data }) => `created client ${data.client_id}`,
  "client.secret_rotated": ({ data }) =>
    data.compromised
      ? "rotated the compromised client secret and revoked all older secrets and tokens"
      : data.previous_expires_at
        ? `rotated the client secret; the previous one expires ${toText(data.previous_expires_at)}`
        : "created a client secret",
  "client.secret_ended": ({ data }) => `revoked client secret ${data.secret_id}`,
  "client.secrets_removed": () => "removed all client secrets; the client authenticates with its keys only",
  "client.key_added": ({ data }) => `added client key ${data.thumbprint}`,
  "client.key_removed": ({ data }) =>
    data.compromised
      ? `removed compromised client key ${data.thumbprint} and revoked all tokens of the client`
      : `removed client key ${data.thumbprint}`,
  "client.redirect_uris_changed": ({ data }) => `changed the redirect URIs to ${list(data.redirect_uris)}`,
  "trust_rule.created": ({ data }) =>
    `added trust rule “${data.name}” for ${data.subject} of ${data.issuer}: ${list(data.scopes)}`,
  "trust_rule.deleted": ({ data }) => `deleted trust rule “${data.name}”`,
  "authorization.granted": ({ data, app }) =>
    `authorized ${app(data.client_id)}${
      data.consented_at ? ` again, with the consent of ${toText(data.consented_at)}` : ""
    }: ${list(withoutImplied(data.scopes as string[]))}`,
  "authorization.revoked": ({ data, name, app }) =>
    `revoked the access of ${app(data.client_id)} authorized by ${name(data.user_id)}`,
  "link.created": ({ data }) => `created link ${slugOf(data)}`,
  "link.updated": ({ data }) =>
    String(data.changed) === "archived"
      ? `${linkOf(data).archived ? "archived" : "restored"} link ${slugOf(data)}`
      : `updated link ${slugOf(data)} (${list(data.changed)})`,
  "link.deleted": ({ data }) => `deleted link ${slugOf(data)}`,
  "link.clicked": ({ data }) => `followed link ${slugOf(data)}`,
  "webhook.created": ({ data }) => `created webhook ${data.url ?? ""}`,
  "webhook.updated": ({ data }) => `updated webhook ${data.url ?? ""}`,
  "webhook.deleted": ({ data }) => `deleted webhook ${data.url ?? ""}`,
  "webhook.secret_rotated": ({ data }) => `rotated the signing secret of webhook ${data.url ?? ""}`,
  "webhook.secret_viewed": ({ data }) => `viewed the signing secret of webhook ${data.url ?? ""}`,
  "webhook.disabled": ({ data }) => `disabled webhook ${data.url ?? ""}: ${data.reason ?? ""}`,
  "webhook.test": () => "sent a test event to a webhook",
};

/** Describes an entry as the rest of a sentence that starts with the actor; its data must be in the public form. */
export function summaryOf({ type, actor, data, names }: AuditEntry): string {
  // A newer version may have stored event types that this one doesn't know.
  const sentence = SENTENCES[type] ?? (() => type);
  const name = (id: unknown) => names.get(String(id)) ?? String(id);
  return sentence({ data, actor, name, app: (id) => appOf(String(id), names) }).trim();
}

/** Names the actor of an entry: a user, a client, the operator or the system. */
export function actorNameOf({ actor, via, names }: AuditEntry): string {
  const name = names.get(actor) ?? nameOfApp(actor) ?? actor;
  if (via) return `${name} via ${appOf(via, names)}`;
  return actor.startsWith("lgc_") ? `${name} (client)` : name;
}

/** Names an app by its organization, or by its own identity. */
function appOf(clientId: string, names: AuditEntry["names"]): string {
  return nameOfApp(clientId) ?? `an app of ${names.get(clientId) ?? clientId}`;
}

/** `https://claude.ai/oauth/…` → `Claude (claude.ai)`. */
function nameOfApp(clientId: string): string | undefined {
  const identity = identityOf(clientId);
  if (!identity) return undefined;
  return identity.isKnown ? `${identity.name} (${identity.publisher})` : identity.name;
}

function resetLinkOf({ reset_link_created_by: creator }: Data, name: Entry["name"]): string {
  if (!creator) return "";
  return `, using a reset link created by ${creator === OPERATOR.id ? "the operator" : name(creator)}`;
}

/** `free` → `Free`. */
function planName(plan: unknown): string {
  const id = String(plan);
  return id.charAt(0).toUpperCase() + id.slice(1);
}

function list(value: unknown): string {
  return Array.isArray(value) && value.length > 0 ? value.join(", ") : "none";
}

/** Formats an RFC 3339 time; other values stay as they are, so that one odd entry doesn't hide the log. */
function toText(time: unknown): string {
  const at = Date.parse(String(time));
  return Number.isNaN(at) ? String(time) : formatTime(at);
}

function linkOf(data: Data): { slug?: string; archived?: boolean } {
  return data.link ?? {};
}

function slugOf(data: Data): string {
  return `/${linkOf(data).slug ?? ""}`;
}
