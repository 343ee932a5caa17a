import type { AuditEntry } from "../../adapters/events/audit-log.ts";
import { withoutImplied } from "../../resources/access/scopes.ts";
import { ANONYMOUS, type EventType, OPERATOR } from "../../resources/events/types.ts";
import { identityOf } from "../clients/app-identity.ts";
import { capitalized, formatTime } from "../ui/text.ts";
import type { AuditedType } from "./audit-query.ts";

type Data = Record<string, unknown>;
type Entry = {
  data: Data;
  actor: string;
  /** Returns the name of a user or of a client's organization, or the ID if it has none. */
  name: (id: unknown) => string;
  /** The name of the user that the entry is about. */
  user: string;
  /** How a sentence calls the client that the entry is about. */
  app: string;
};

const SENTENCES: Record<AuditedType, (entry: Entry) => string> = {
  "organization.created": ({ data }) =>
    `created organization “${data.name}” on the ${capitalized(String(data.plan))} plan`,
  "organization.renamed": ({ data }) => `renamed the organization from “${data.from}” to “${data.to}”`,
  "organization.allowed_clients_changed": ({ data }) =>
    `changed the app policy from ${data.from} to ${data.to}`,
  "organization.member_apps_changed": ({ data }) =>
    `changed which apps members may authorize from ${data.from} to ${data.to}`,
  "organization.dpop_requirement_changed": ({ data }) =>
    data.required ? "required DPoP for API and MCP tokens" : "stopped requiring DPoP for API and MCP tokens",
  "organization.second_factor_required": ({ data }) =>
    data.required
      ? "required a second factor for owners and admins"
      : "stopped requiring a second factor for owners and admins",
  "organization.fallback_url_changed": ({ data }) =>
    data.to === null
      ? "removed the fallback URL of unavailable links"
      : `changed the fallback URL of unavailable links to ${data.to}`,
  "organization.time_zone_changed": ({ data }) => `changed the time zone from ${data.from} to ${data.to}`,
  "organization.suspended": ({ data }) => `suspended the organization${because(data)}`,
  "organization.resumed": () => "resumed the organization",
  "organization.deleted": ({ data }) => `deleted the organization${because(data)}`,
  "audit_log.exported": ({ data }) =>
    `exported ${Object.keys(data).length > 0 ? "part of " : ""}the audit log`,
  "enterprise_authorization.changed": ({ data }) =>
    `turned enterprise-managed authorization ${data.enabled ? "on" : "off"}`,
  "plan.changed": ({ data }) =>
    `changed the plan from ${capitalized(String(data.from))} to ${capitalized(String(data.to))}`,
  "member.added": ({ data, actor, user }) =>
    data.user_id === actor ? `joined as ${data.role}` : `added ${user} as ${data.role}`,
  "member.role_changed": ({ data, user }) => `changed the role of ${user} from ${data.from} to ${data.to}`,
  "member.removed": ({ data, actor, user }) =>
    data.user_id === actor
      ? `left the organization (role: ${data.role})`
      : `removed ${user} (role: ${data.role})`,
  "member.reset_link_created": ({ user }) => `created a password reset link for ${user}`,
  "member.password_changed": ({ data, name, user }) =>
    `set a new password for ${user}${resetLinkOf(data, name)}`,
  "member.identity_linked": ({ data, user }) => `linked an SSO identity of ${data.issuer} to ${user}`,
  "member.identity_unlinked": ({ data, user }) => `unlinked an SSO identity of ${data.issuer} from ${user}`,
  "member.second_factor_added": ({ data, user }) => `added ${factorName(data.method)} for ${user}`,
  "member.second_factor_removed": ({ data, user }) => `removed ${factorName(data.method)} of ${user}`,
  "member.second_factors_reset": ({ user }) => `removed all second factors of ${user}`,
  "member.recovery_codes_replaced": ({ user }) => `created new recovery codes for ${user}`,
  "member.recovery_code_used": ({ user }) => `used a recovery code of ${user}`,
  "member.disabled": ({ data, user }) => `disabled the account of ${user}${because(data)}`,
  "member.enabled": ({ user }) => `enabled the account of ${user}`,
  "member.signed_out": ({ data, user }) => signOutOf(data, user),
  "member.signed_in": ({ data }) => `signed in${withMethods(data.methods)}`,
  "member.sign_in_failed": ({ data, user }) => `failed to sign in as ${user}${times(data.attempts)}`,
  "member.sign_in_throttled": ({ data, user }) =>
    `was blocked by the rate limit while signing in as ${user}${times(data.attempts)}`,
  "member.second_factor_failed": ({ data, user }) =>
    `failed to prove the second factor of ${user}${times(data.attempts)}`,
  "member.reauthenticated": ({ data }) => `signed in again${withMethods(data.methods)}`,
  "member.logged_out": () => "signed out",
  "member.session_ended": ({ data, actor, user }) =>
    `ended ${Number(data.sessions) === 1 ? "a session" : `${data.sessions} sessions`}${
      data.user_id === actor ? "" : ` of ${user}`
    }`,
  "member.data_exported": () => "exported their account data",
  "invitation.created": ({ data }) => `created an invitation${forWhom(data)} with the role ${data.role}`,
  "invitation.revoked": ({ data }) => `revoked an invitation${forWhom(data)} with the role ${data.role}`,
  "app.approved": ({ app }) => `approved ${app} for members`,
  "app.approval_withdrawn": ({ app }) => `withdrew the approval of ${app}`,
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
  "client.profile_changed": ({ data }) =>
    `changed the name of the client to ${data.client_name === null ? "that of the organization" : `“${data.client_name}”`}, and its homepage to ${data.client_uri ?? "none"}`,
  "client.disabled": ({ data }) => `disabled client ${data.client_id}${because(data)}`,
  "client.enabled": ({ data }) => `enabled client ${data.client_id}`,
  "client.fapi_changed": ({ data }) =>
    `turned the FAPI 2.0 Security Profile ${data.enabled ? "on" : "off"} for the client`,
  "token.leaked": ({ data, app }) =>
    `revoked ${data.token_type === "refresh_token" ? "a refresh token" : "an access token"} of ${app}, because it leaked${foundAt(data)}`,
  "domain.created": ({ data }) => `added domain ${data.host}`,
  "domain.updated": ({ data }) => `changed domain ${data.host}`,
  "domain.verified": ({ data }) => `verified domain ${data.host}`,
  "domain.record_lost": ({ data }) => `found no DNS record of domain ${data.host}`,
  "domain.taken_over": ({ data }) =>
    `gave ${data.host} to another organization, which has proved it, after 7 days without a DNS record`,
  "domain.deleted": ({ data }) => `deleted domain ${data.host}`,
  "trust_rule.created": ({ data }) =>
    `added trust rule “${data.name}” for ${data.subject} of ${data.issuer}: ${list(data.scopes)}`,
  "trust_rule.deleted": ({ data }) => `deleted trust rule “${data.name}”`,
  "authorization.granted": ({ data, app }) =>
    `authorized ${app}: ${list(withoutImplied(data.scopes as string[]))}`,
  "authorization.revoked": ({ data, user, app }) =>
    `revoked the access of ${app} authorized by ${user}${
      data.reason === "replay_detected" ? ", because a code or token was replayed" : ""
    }`,
  "token.replay_detected": ({ data, user, app }) =>
    `detected that ${app} used ${
      data.replayed === "refresh_token"
        ? "a refresh token"
        : `${data.replayed === "device_code" ? "a device" : "an authorization"} code`
    } of ${user} again`,
  "link.created": ({ data }) => `created link ${slugOf(data)}`,
  "link.updated": ({ data }) => {
    const verb = updateVerbOf(data);
    return `${verb} link ${slugOf(data)}${verb === "updated" ? ` (${list(data.changed)})` : ""}`;
  },
  "link.deleted": ({ data }) => `deleted link ${slugOf(data)}`,
  "link.disabled": ({ data }) => `disabled link /${data.slug}${because(data)}`,
  "link.enabled": ({ data }) => `enabled link /${data.slug}`,
  "links.imported": ({ data }) =>
    `imported ${Number(data.imported).toLocaleString("en")} ${data.imported === 1 ? "link" : "links"} (${data.format})`,
  "webhook.created": ({ data }) => `created webhook ${data.url ?? ""}`,
  "webhook.updated": ({ data }) => `updated webhook ${data.url ?? ""}`,
  "webhook.deleted": ({ data }) => `deleted webhook ${data.url ?? ""}`,
  "webhook.secret_rotated": ({ data }) => `rotated the signing secret of webhook ${data.url ?? ""}`,
  "webhook.secret_viewed": ({ data }) => `viewed the signing secret of webhook ${data.url ?? ""}`,
  "webhook.quota_reached": ({ data }) =>
    `reached the quota of ${Number(data.deliveries_per_day).toLocaleString("en")} deliveries per day; further ones wait until 00:00 UTC`,
  "webhook.disabled": ({ data }) => `disabled webhook ${data.url ?? ""}: ${data.reason ?? ""}`,
};

/** Describes an entry as the rest of a sentence that starts with the actor; its data must be in the public form. */
export function summaryOf({ type, actor, data, names }: AuditEntry): string {
  // A newer version may have stored event types that this one doesn't know.
  const sentence = SENTENCES[type as AuditedType] ?? (() => type);
  const name = (id: unknown) => names.get(String(id)) ?? String(id);
  const entry: Entry = {
    data,
    actor,
    name,
    get user() {
      return name(data.user_id);
    },
    get app() {
      return appOf(String(data.client_id), names);
    },
  };
  return sentence(entry).trim();
}

// What apps and scripts do many times in a row.
const GROUP_VERBS: Partial<Record<EventType, string>> = {
  "link.created": "created",
  "link.deleted": "deleted",
};

/** Returns the verb of a sentence about several entries like this one. Undefined for types that are never grouped. */
export function groupVerbOf({ type, data }: Pick<AuditEntry, "type" | "data">): string | undefined {
  return type === "link.updated" ? updateVerbOf(data) : GROUP_VERBS[type];
}

function updateVerbOf(data: Data): string {
  if (String(data.changed) !== "archived") return "updated";
  return linkOf(data).archived ? "archived" : "restored";
}

/** Names the actor of an entry: a user, a client, the operator or the system. */
export function actorNameOf({ actor, names }: AuditEntry): string {
  if (actor === ANONYMOUS.id) return "Unknown user";
  const name = names.get(actor) ?? nameOfApp(actor) ?? actor;
  return actor.startsWith("lgc_") ? `${name} (client)` : name;
}

/** Returns how a sentence calls a client. */
export function appOf(clientId: string, names: AuditEntry["names"]): string {
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

function forWhom({ label }: Data): string {
  return label ? ` for ${label}` : "";
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

function foundAt({ url }: Data): string {
  return url ? ` at ${url}` : "";
}
