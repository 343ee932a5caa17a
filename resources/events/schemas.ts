import { z } from "zod";
import { ROLES } from "../access/scopes.ts";
import { DEVICES } from "../links/redirect-rules.ts";
import { linkSchema } from "../links/schema.ts";
import { PLANS } from "../plans.ts";

const time = z.iso.datetime();
const plan = z.enum(PLANS);
const role = z.enum(ROLES);
const allowedClients = z
  .enum(["known", "any", "none"])
  .describe("Which third-party apps members may connect.");
const memberApps = z
  .enum(["any", "approved", "none"])
  .describe("Which apps the role `member` may authorize.");
const client = z.object({ client_id: z.string() });
const reason = z.string().nullable().describe("The reason given. `null` if there was none.");
const changed = z.array(z.string()).describe("The names of the changed fields.");

const user = z.object({ user_id: z.string() });
const membership = user.extend({ role });
const identity = user.extend({ issuer: z.string() });
const secondFactor = user.extend({ method: z.enum(["totp", "passkey"]) });
const attempts = user.extend({
  attempts: z.int().describe("The number of attempts that the entry stands for."),
});
const signIn = user.extend({
  methods: z.array(z.string()).describe("How the user signed in, such as `password` or `sso`."),
});
const invitation = z.object({
  invitation_id: z.string(),
  role,
  label: z
    .string()
    .nullable()
    .describe("For whom it is: its label, or else the email address. `null` if neither is known."),
});
const authorization = z.object({
  grant_id: z.string(),
  client_id: z.string().describe("The client that received access."),
  user_id: z.string().describe("The user who granted access."),
  scopes: z.array(z.string()),
});
const trustRule = z.object({
  trust_rule_id: z.string(),
  name: z.string(),
  issuer: z.string(),
  subject: z.string(),
  audience: z.string(),
  claims: z.record(z.string(), z.string()),
  scopes: z.array(z.string()),
});
const revoked = authorization.extend({
  reason: z
    .literal("replay_detected")
    .optional()
    .describe("Why the service itself revoked the access. Absent if a user, an app or the operator did."),
});
const link = z.object({ link: linkSchema });
const domain = z.object({ domain_id: z.string(), host: z.string() });
const webhook = z.object({ url: z.string(), events: z.array(z.string()), enabled: z.boolean() });

const foundAt = {
  source: z.string().nullable().describe("The kind of place where it was found, such as `commit`."),
  url: z.string().nullable().describe("Where it was found, according to the report."),
};

const clientKey = client.extend({
  key_id: z.string(),
  thumbprint: z.string().describe("The thumbprint of the public key (RFC 7638)."),
});

/** The public data of every event type: what webhooks receive and what the audit log shows. */
export const EVENT_DATA_SCHEMAS = {
  "organization.created": z.object({ name: z.string(), plan, owner_id: z.string().optional() }),
  "organization.renamed": z.object({ from: z.string(), to: z.string() }),
  "organization.allowed_clients_changed": z.object({ from: allowedClients, to: allowedClients }),
  "organization.member_apps_changed": z.object({ from: memberApps, to: memberApps }),
  "organization.dpop_requirement_changed": z.object({
    required: z.boolean().describe("Whether tokens must be bound to a key (RFC 9449)."),
  }),
  "organization.second_factor_required": z.object({
    required: z.boolean().describe("Whether owners and admins must use a second factor."),
  }),
  "organization.fallback_url_changed": z.object({
    from: z.string().nullable(),
    to: z.string().nullable().describe("Where visitors of unavailable links go. `null` for nowhere."),
  }),
  "organization.time_zone_changed": z.object({
    from: z.string(),
    to: z.string().describe("The IANA name of the time zone that later clicks are counted in."),
  }),
  "organization.suspended": z.object({ reason }),
  "organization.resumed": z.object({}),
  "organization.deleted": z.object({ reason: z.string().optional() }),
  "audit_log.exported": z.object({
    types: z.array(z.string()).optional().describe("The exported event types. Absent if all were."),
    actor: z.string().optional(),
    client_id: z.string().optional(),
    from: time.optional(),
    to: time.optional(),
    part: z.string().optional(),
  }),
  "enterprise_authorization.changed": z.object({ enabled: z.boolean() }),
  "plan.changed": z.object({ from: plan, to: plan }),
  "member.added": membership,
  "member.role_changed": user.extend({ from: role, to: role }),
  "member.removed": membership,
  "member.reset_link_created": user,
  "member.password_changed": user.extend({
    reset_link_created_by: z
      .string()
      .optional()
      .describe("Who created the reset link, if one was used: a user ID or `operator`."),
  }),
  "member.identity_linked": identity,
  "member.identity_unlinked": identity,
  "member.second_factor_added": secondFactor,
  "member.second_factor_removed": secondFactor,
  "member.second_factors_reset": user,
  "member.recovery_codes_replaced": user,
  "member.recovery_code_used": user,
  "member.disabled": user.extend({ reason }),
  "member.enabled": user,
  "member.signed_out": user.extend({
    sessions: z.boolean().describe("Whether the user's sessions were ended."),
    apps: z.boolean().describe("Whether the apps that the user authorized were revoked."),
  }),
  "member.signed_in": signIn,
  "member.sign_in_failed": attempts,
  "member.sign_in_throttled": attempts,
  "member.second_factor_failed": attempts,
  "member.reauthenticated": signIn,
  "member.logged_out": user,
  "member.session_ended": user.extend({ sessions: z.int().describe("The number of ended sessions.") }),
  "member.data_exported": user,
  "invitation.created": invitation,
  "invitation.revoked": invitation,
  "domain.created": domain,
  "domain.updated": domain.extend({ changed }),
  "domain.verified": domain,
  "domain.record_lost": domain,
  "domain.taken_over": domain,
  "domain.deleted": domain,
  "app.approved": client,
  "app.approval_withdrawn": client,
  "client.created": client,
  "client.secret_rotated": client.extend({
    compromised: z
      .boolean()
      .describe("Whether the rotation immediately revoked all older secrets and tokens."),
    previous_expires_at: time
      .nullable()
      .describe("When the previous secret expires. `null` if there was none."),
  }),
  "client.secret_ended": client.extend({ secret_id: z.string() }),
  "client.secret_leaked": client.extend({ secret_id: z.string(), last4: z.string(), ...foundAt }),
  "client.secrets_removed": client,
  "client.key_added": clientKey,
  "client.key_removed": clientKey.extend({
    compromised: z.boolean().describe("Whether all tokens of the client were revoked as well."),
  }),
  "client.redirect_uris_changed": client.extend({ redirect_uris: z.array(z.string()) }),
  "client.profile_changed": client.extend({
    client_name: z.string().nullable().describe("The new name. `null` for the name of the organization."),
    client_uri: z.string().nullable().describe("The URL of the new homepage."),
  }),
  "client.disabled": client.extend({ reason }),
  "client.enabled": client,
  "client.fapi_changed": client.extend({
    enabled: z.boolean().describe("Whether the client follows the FAPI 2.0 Security Profile."),
  }),
  "token.leaked": client.extend({
    user_id: z.string().nullable().describe("The user who authorized the client. `null` without one."),
    token_type: z.enum(["access_token", "refresh_token"]),
    ...foundAt,
  }),
  "trust_rule.created": trustRule,
  "trust_rule.deleted": trustRule,
  "authorization.granted": authorization,
  "authorization.revoked": revoked,
  "token.replay_detected": z.object({
    grant_id: z.string(),
    client_id: z.string().describe("The client that sent the code or token again."),
    user_id: z.string().describe("The user who granted access."),
    replayed: z
      .enum(["authorization_code", "device_code", "refresh_token"])
      .describe("What was used again after its first use. All tokens of the grant were revoked."),
  }),
  "link.created": link,
  "link.updated": z.object({
    link: linkSchema
      .partial()
      .describe("The ID, slug and changed fields. Metadata of more than 2,000 bytes is left out."),
    changed,
  }),
  "link.deleted": z.object({ link: linkSchema.partial({ metadata: true }) }),
  "link.clicked": z.object({
    link_id: z.string(),
    slug: z.string(),
    url: z.string().describe("The destination URL."),
    short_url: z.string(),
    clicked_at: time,
    clicks: z
      .int()
      .describe(
        "The number of clicks since the previous event, without those of known bots. The fields below describe the first click, bots included.",
      ),
    bot_clicks: z.int().describe("The number of clicks of known bots since the previous event."),
    referrer: z
      .string()
      .nullable()
      .describe("The referring site (registrable domain), if known. Visitors can send any value."),
    country: z.string().nullable().describe("The ISO 3166-1 alpha-2 country code, if known."),
    device: z.enum(DEVICES).nullable().describe("The kind of device, if the user agent tells."),
    browser: z.string().nullable().describe("The name of the browser, if the user agent tells."),
    operating_system: z.string().nullable().describe("Its operating system, if the user agent tells."),
  }),
  "link.disabled": z.object({ link_id: z.string(), slug: z.string(), reason }),
  "link.enabled": z.object({ link_id: z.string(), slug: z.string() }),
  "links.imported": z.object({
    imported: z
      .int()
      .describe("The number of links that were stored together. An import has many such entries."),
    format: z.string().describe("The format of the imported file, such as `Bitly`."),
  }),
  "webhook.created": webhook,
  "webhook.updated": webhook.extend({ changed }),
  "webhook.deleted": webhook.omit({ enabled: true }),
  "webhook.secret_rotated": z.object({
    url: z.string(),
    previous_expires_at: time.describe("When the previous secret stops signing."),
  }),
  "webhook.secret_viewed": z.object({ url: z.string() }),
  "webhook.disabled": z.object({ url: z.string(), reason: z.string() }),
  "webhook.quota_reached": z.object({
    deliveries_per_day: z.int().describe("The quota. Further deliveries wait for the next day."),
  }),
  "webhook.test": z.object({
    webhook_id: z.string(),
    verification: z
      .boolean()
      .describe("Whether the webhook gets other events only once this one is accepted."),
  }),
  "operator.command_started": z.object({
    command: z.string(),
    arguments: z.array(z.string()),
    options: z.record(z.string(), z.unknown()),
    os_user: z.string(),
    host: z.string(),
  }),
  "operator.command_finished": z.object({
    command_id: z.string().describe("The entry of the command’s start."),
    outcome: z.enum(["succeeded", "failed"]),
    error: z.string().optional().describe("The error code."),
  }),
} satisfies Record<string, z.ZodObject>;
