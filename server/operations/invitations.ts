import { z } from "zod";
import { MANAGERS, manageableRoles, ROLES } from "../../resources/access/scopes.ts";
import { found, notFound } from "../../resources/http/problem.ts";
import { hasAtMost } from "../../resources/http/text.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { checkText } from "../../resources/http/validate.ts";
import { limitsOf, throwQuotaProblem } from "../../resources/plans.ts";
import { emailAddress, NAME_MAX, normalizeName, validateCharacters } from "../credentials/names.ts";
import { tooManyEmails } from "./email.ts";
import { ownersOnly, roleSchema } from "./members.ts";
import { onAccount, onOrganization } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { timestamp } from "./schemas.ts";

const PATH = "/dashboard/organizations/{id}/invitations";
const LINK = "/dashboard/invitations/{token}";
const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

const invitationSchema = z.object({
  id: z.string(),
  role: z.enum(ROLES),
  label: z.string().nullable().describe("For whom it is."),
  email: z.string().nullable().describe("Where the link was sent."),
  created_by: z.string(),
  created_at: timestamp,
  expires_at: timestamp,
});
const organizationSchema = z.object({ id: z.string(), name: z.string() });

export const listInvitations = onOrganization({
  at: `GET ${PATH}`,
  summary: "List the open invitations",
  roles: MANAGERS,
  output: z.object({ data: z.array(invitationSchema) }),
  run: async ({ storage, organization }) => ({
    data: (await storage.invitations.list(organization.id)).map((open) => toJson(invitationSchema, open)),
  }),
});

const label = z
  .string({ error: "must be a string" })
  .transform(normalizeName)
  .check(checkText(validateLabel));

function validateLabel(text: string): string | undefined {
  return hasAtMost(NAME_MAX, text) ? validateCharacters(text) : `must be at most ${NAME_MAX} characters long`;
}

function withoutBlank(text: unknown): unknown {
  return typeof text === "string" && text.trim() === "" ? undefined : text;
}

export const createInvitation = onOrganization({
  at: `POST ${PATH}`,
  summary: "Invite a member",
  roles: MANAGERS,
  description:
    "Creates a link that works once, within seven days. Only owners can invite owners. To invite an owner or admin, you must have signed in recently.",
  input: z.strictObject({
    role: roleSchema.default("member"),
    // A form sends an empty text for what was left out.
    label: z
      .preprocess(withoutBlank, label.optional())
      .describe("For whom it is, for the list and the audit log."),
    email: z
      .preprocess(withoutBlank, emailAddress.optional())
      .describe("Where to send the link, if the server sends email."),
  }),
  output: z.object({
    invitation: invitationSchema,
    url: z.string().describe("The link, which is shown only once."),
  }),
  status: 201,
  shownOnce: "url",
  refuses: ["quota_exceeded", "mail_disabled", "too_many_emails", "reauthentication_required"],
  events: ["invitation.created"],
  async run({ storage, settings, urls, organization, actor, member, signIn, input }) {
    const { user, role: ownRole } = found(member, "member");
    const { role, label, email } = input;
    if (!manageableRoles(ownRole).includes(role)) throw ownersOnly();
    if (role !== "member") signIn?.requireRecent();
    if (email && !settings.SMTP_URL) throw refusal("mail_disabled");
    const creation = { organizationId: organization.id, role, label, lifetimeMs: LIFETIME_MS, actor };
    const { invitations } = storage;
    const created = email
      ? await invitations.createByMail(creation, email, limitsOf).catch(throwQuotaProblem)
      : await invitations.create(creation, limitsOf).catch(throwQuotaProblem);
    if (!created) throw tooManyEmails();
    return {
      invitation: toJson(invitationSchema, { ...created.invitation, createdBy: user.username }),
      url: `${urls.base}/dashboard/invitations/${created.token}`,
    };
  },
});

export const revokeInvitation = onOrganization({
  at: `DELETE ${PATH}/{invitation_id}`,
  summary: "Revoke an invitation",
  roles: MANAGERS,
  events: ["invitation.revoked"],
  done: { "invitation-revoked": "Invitation revoked." },
  async run({ storage, organization, actor, member, params }) {
    const roles = manageableRoles(found(member, "member").role);
    if (!(await storage.invitations.revoke(organization.id, params.invitation_id, roles, actor)))
      throw notFound("invitation");
  },
});

export const getInvitation = onAccount({
  at: `GET ${LINK}`,
  summary: "Retrieve an invitation by its token",
  output: z.object({
    organization: organizationSchema,
    role: z.enum(ROLES),
    invited_by: z.string().nullable().describe("The username; `null` for the operator."),
  }),
  refuses: ["invitation_invalid"],
  async run({ storage, params }) {
    const open = await storage.invitations.find(params.token);
    if (!open) throw refusal("invitation_invalid");
    const { organizationId: id, organizationName: name, role, inviter } = open;
    return { organization: { id, name }, role, invited_by: inviter };
  },
});

export const acceptInvitation = onAccount({
  at: `POST ${LINK}`,
  summary: "Accept an invitation",
  output: z.object({
    organization: organizationSchema,
    role: z.enum(ROLES),
    joined: z.boolean().describe("Whether the user wasn't a member before."),
  }),
  refuses: ["invitation_invalid"],
  events: ["member.added"],
  done: { joined: "You joined the organization." },
  outcome: (_, { joined }) => (joined ? "joined" : undefined),
  async run({ storage, user, params }) {
    const accepted = await storage.invitations.accept(params.token, user.actor);
    if (!accepted) throw refusal("invitation_invalid");
    const { organizationId: id, organizationName: name, role, isNew: joined } = accepted;
    return { organization: { id, name }, role, joined };
  },
});
