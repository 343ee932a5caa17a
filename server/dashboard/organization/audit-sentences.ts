import type { AuditEntry } from "../../../adapters/events/audit-log.ts";
import { withoutImplied } from "../../../resources/access/scopes.ts";
import { ANONYMOUS, type EventType, OPERATOR } from "../../../resources/events/types.ts";
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
    `changed which apps besides those of organizations may connect from ${data.from} to ${data.to}`,
  "organization.member_apps_changed": ({ data }) =>
    `changed which apps members may authorize from ${data.from} to ${data.to}`,
  "organization.dpop_requirement_changed": ({ data }) =>
    data.required ? "required DPoP for API and MCP tokens" : "stopped requiring DPoP for API and MCP tokens",
  "organization.second_factor_required": ({ data }) =>
    data.required
      ? "required a second factor for owners and admins"
      : "stopped requiring a second factor for owners and admins",
  "organization.suspended": ({ data }) => `suspended the organization${because(data)}`,
  "organization.resumed": () => "resumed the organization",
  "organization.deleted": ({ data }) => `deleted the organization${because(data)}`,
  "audit_log.exported": ({ data }) =>
    `exported ${Object.keys(data).length > 0 ? "part of " : ""}the audit log`,
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
  "member.second_factor_added": ({ data, name }) =>
    `added ${factorName(data.method)} for ${name(data.user_id)}`,
  "member.second_factor_removed": ({ data, name }) =>
    `removed ${factorName(data.method)} of ${name(data.user_id)}`,
  "member.second_factors_reset": ({ data, name }) => `removed all second factors of ${name(data.user_id)}`,
  "member.recovery_codes_replaced": ({ data, name }) =>
    `created new recovery codes for ${name(data.user_id)}`,
  "member.recovery_code_used": ({ data, name }) => `used a recovery code of ${name(data.user_id)}`,
  "member.disabled": ({ data, name }) => `disabled the account of ${name(data.user_id)}${because(data)}`,
  "member.enabled": ({ data, name }) => `enabled the account of ${name(data.user_id)}`,
  "member.signed_out": ({ data, name }) => signOutOf(data, name(data.user_id)),
  "member.signed_in": ({ data }) => `signed in${withMethods(data.methods)}`,
  "member.sign_in_failed": ({ data, name }) =>
    `failed to sign in as ${name(data.user_id)}${times(data.attempts)}`,
  "member.sign_in_throttled": ({ data, name }) =>
    `was blocked by the rate limit while signing in as ${name(data.user_id)}${times(data.attempts)}`,
  "member.second_factor_failed": ({ data, name }) =>
    `failed to prove the second factor of ${name(data.user_id)}${times(data.attempts)}`,
  "member.reauthenticated": ({ data }) => `signed in again${withMethods(data.methods)}`,
  "member.logged_out": () => "signed out",
  "member.session_ended": ({ data, actor, name }) =>
    `ended ${Number(data.sessions) === 1 ? "a session" : `${data.sessions} sessions`}${
      data.user_id === actor ? "" : ` of ${name(data.user_id)}`
    }`,
  "member.data_exported": () => "exported their account data",
  "invitation.created": ({ data }) => `created an invitation with the role ${data.role}`,
  "invitation.revoked": ({ data }) => `revoked an invitation with the role ${data.role}`,
  "app.approved": ({ data, app }) => `approved ${app(data.client_id)} for members`,
  "app.approval_withdrawn": ({ data, app }) => `withdrew the approval of ${app(data.client_id)}`,
  "client.created": ({ data }) => `created client ${data.client_id}`,
  "client.secret_rotated": ({ data }) =>
    data.compromised
      ? "rotated the compromised client secret and revoked all older secrets and tokens"
      : data.previous_expires_at
        ? `rotated the client secret; the previous one expires ${toText(data.previous_expires_at)}`
        : "created a client secret",
  "client.secret_ended": ({ data }) => `revoked client secret ${data.secret_id}`,
  "client.secret_leaked": ({ data }) =>
    `revoked the client secret ending in ${data.last4} and all tokens of the client, because it leaked${foundAt(data)}`,
  "client.secrets_removed": () => "removed all client secrets; the client authenticates with its keys only",
  "client.key_added": ({ data }) => `added client key ${data.thumbprint}`,
  "client.key_removed": ({ data }) =>
    data.compromised
      ? `removed compromised client key ${data.thumbprint} and revoked all tokens of the client`
      : `removed client key ${data.thumbprint}`,
  "client.redirect_uris_changed": ({ data }) => `changed the redirect URIs to ${list(data.redirect_uris)}`,
  "client.disabled": ({ data }) => `disabled client ${data.client_id}${because(data)}`,
  "client.enabled": ({ data }) => `enabled client ${data.client_id}`,
  "token.leaked": ({ data, app }) =>
    `revoked ${data.token_type === "refresh_token" ? "a refresh token" : "an access token"} of ${app(data.client_id)}, because it leaked${foundAt(data)}`,
  "trust_rule.created": ({ data }) =>
    `added trust rule “${data.name}” for ${data.subject} of ${data.issuer}: ${list(data.scopes)}`,
  "trust_rule.deleted": ({ data }) => `deleted trust rule “${data.name}”`,
  "authorization.granted": ({ data, app }) =>
    `authorized ${app(data.client_id)}: ${list(withoutImplied(data.scopes as string[]))}`,
  "authorization.revoked": ({ data, name, app }) =>
    `revoked the access of ${app(data.client_id)} authorized by ${name(data.user_id)}${
      data.reason === "replay_detected" ? ", because a code or token was replayed" : ""
    }`,
  "token.replay_detected": ({ data, name, app }) =>
    `detected that ${app(data.client_id)} used ${
      data.replayed === "authorization_code" ? "an authorization code" : "a refresh token"
    } of ${name(data.user_id)} again`,
  "link.created": ({ data }) => `created link ${slugOf(data)}`,
  "link.updated": ({ data }) =>
    String(data.changed) === "archived"
      ? `${linkOf(data).archived ? "archived" : "restored"} link ${slugOf(data)}`
      : `updated link ${slugOf(data)} (${list(data.changed)})`,
  "link.deleted": ({ data }) => `deleted link ${slugOf(data)}`,
  "link.clicked": ({ data }) => `followed link ${slugOf(data)}`,
  "link.disabled": ({ data }) => `disabled link /${data.slug}${because(data)}`,
  "link.enabled": ({ data }) => `enabled link /${data.slug}`,
  "webhook.created": ({ data }) => `created webhook ${data.url ?? ""}`,
  "webhook.updated": ({ data }) => `updated webhook ${data.url ?? ""}`,
  "webhook.deleted": ({ data }) => `deleted webhook ${data.url ?? ""}`,
  "webhook.secret_rotated": ({ data }) => `rotated the signing secret of webhook ${data.url ?? ""}`,
  "webhook.secret_viewed": ({ data }) => `viewed the signing secret of webhook ${data.url ?? ""}`,
  "webhook.quota_reached": ({ data }) =>
    `reached the quota of ${Number(data.deliveries_per_day).toLocaleString("en")} deliveries per day; further ones wait until 00:00 UTC`,
  "webhook.disabled": ({ data }) => `disabled webhook ${data.url ?? ""}: ${data.reason ?? ""}`,
  "webhook.test": () => "sent a test event to a webhook",
  "operator.command_started": ({ data }) => `ran ${data.command}`,
  "operator.command_finished": ({ data }) => `finished a command: ${data.outcome}`,
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
  if (actor === ANONYMOUS.id) return "Unknown user";
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

function factorName(method: unknown): string {
  return method === "passkey" ? "a passkey" : "an authenticator app";
}

function because({ reason }: Data): string {
  return reason ? `: ${reason}` : "";
}

function signOutOf({ sessions, apps }: Data, user: string): string {
  if (!sessions) return `revoked the apps that ${user} authorized`;
  return apps ? `signed ${user} out and revoked the apps they authorized` : `signed ${user} out`;
}

const METHOD_NAMES: Record<string, string> = {
  password: "a password",
  sso: "SSO",
  passkey: "a passkey",
  totp: "an authenticator app",
  recovery_code: "a recovery code",
};

/** ` with a password and a recovery code`, or nothing if no method is known. */
function withMethods(methods: unknown): string {
  const names = Array.isArray(methods) ? methods.map((method) => METHOD_NAMES[method] ?? method) : [];
  return names.length > 0 ? ` with ${names.join(" and ")}` : "";
}

/** ` (3 attempts)`, or nothing for a single one. */
function times(attempts: unknown): string {
  return Number(attempts) > 1 ? ` (${Number(attempts).toLocaleString("en")} attempts)` : "";
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

/** Says where a leaked credential was found. */
function foundAt({ url }: Data): string {
  return url ? ` at ${url}` : "";
}
