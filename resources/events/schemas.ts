import { z } from "zod";
import { linkSchema } from "../links/schema.ts";
import { PLANS } from "../plans.ts";
import type { EventType } from "./types.ts";

const time = z.iso.datetime();
const plan = z.enum(PLANS);
const role = z.enum(["owner", "admin", "member"]);
const allowedClients = z
  .enum(["known", "any", "none"])
  .describe("Which apps members may connect, besides those of organizations.");
const changed = z.array(z.string()).describe("The names of the changed fields.");

const membership = z.object({ user_id: z.string(), role });
const resetLink = z.object({ user_id: z.string() });
const identity = z.object({ user_id: z.string(), issuer: z.string() });
const invitation = z.object({ invitation_id: z.string(), role });
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
const granted = authorization.extend({
  consented_at: time.optional().describe("When the user consented, if the user was not asked again."),
});
const link = z.object({ link: linkSchema });
const webhook = z.object({ url: z.string(), events: z.array(z.string()), enabled: z.boolean() });

const thumbprint = z.string().describe("The thumbprint of the public key (RFC 7638).");

/** The public data of every event type: what webhooks receive and what the audit log shows. */
export const EVENT_DATA_SCHEMAS = {
  "organization.created": z.object({ name: z.string(), plan, owner_id: z.string().optional() }),
  "organization.renamed": z.object({ from: z.string(), to: z.string() }),
  "organization.allowed_clients_changed": z.object({ from: allowedClients, to: allowedClients }),
  "organization.dpop_requirement_changed": z.object({
    required: z.boolean().describe("Whether tokens must be bound to a key (RFC 9449)."),
  }),
  "organization.deleted": z.object({}),
  "enterprise_authorization.changed": z.object({ enabled: z.boolean() }),
  "plan.changed": z.object({ from: plan, to: plan }),
  "member.added": membership,
  "member.role_changed": z.object({ user_id: z.string(), from: role, to: role }),
  "member.removed": membership,
  "member.reset_link_created": resetLink,
  "member.password_changed": z.object({
    user_id: z.string(),
    reset_link_created_by: z
      .string()
      .optional()
      .describe("Who created the reset link, if one was used: a user ID or `operator`."),
  }),
  "member.identity_linked": identity,
  "member.identity_unlinked": identity,
  "invitation.created": invitation,
  "invitation.revoked": invitation,
  "client.created": z.object({ client_id: z.string() }),
  "client.secret_rotated": z.object({
    client_id: z.string(),
    compromised: z
      .boolean()
      .describe("Whether the rotation immediately revoked all older secrets and tokens."),
    previous_expires_at: time
      .nullable()
      .describe("When the previous secret expires. `null` if there was none."),
  }),
  "client.secret_ended": z.object({ client_id: z.string(), secret_id: z.string() }),
  "client.secrets_removed": z.object({ client_id: z.string() }),
  "client.key_added": z.object({
    client_id: z.string(),
    key_id: z.string(),
    thumbprint,
  }),
  "client.key_removed": z.object({
    client_id: z.string(),
    key_id: z.string(),
    thumbprint,
    compromised: z.boolean().describe("Whether all tokens of the client were revoked as well."),
  }),
  "client.redirect_uris_changed": z.object({ client_id: z.string(), redirect_uris: z.array(z.string()) }),
  "trust_rule.created": trustRule,
  "trust_rule.deleted": trustRule,
  "authorization.granted": granted,
  "authorization.revoked": authorization,
  "link.created": link,
  "link.updated": link.extend({ changed }),
  "link.deleted": link,
  "link.clicked": z.object({
    link_id: z.string(),
    slug: z.string(),
    url: z.string().describe("The destination URL."),
    short_url: z.string(),
    clicked_at: time,
    referrer: z.string().nullable().describe("The referring host, if known."),
    country: z.string().nullable().describe("The ISO 3166-1 alpha-2 country code, if known."),
    bot: z.boolean().describe("Whether the user agent identifies itself as a bot."),
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
  "webhook.test": z.object({ webhook_id: z.string() }),
} satisfies Record<EventType, z.ZodObject>;
