import { z } from "zod";
import type { Member, MemberRefusal } from "../../adapters/organizations/members.ts";
import { MANAGERS, manageableRoles, ROLES } from "../../resources/access/scopes.ts";
import { found, foundIn, notFound, Problem } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { RESET_LINK_MS, resetUrl } from "../credentials/reset-links.ts";
import { type OrganizationRequest, onOrganization } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { deleteWebhooks, timestamp } from "./schemas.ts";

const PATH = "/dashboard/organizations/{id}/members";
/** Why the only owner can't leave or lose the role. */
export const LAST_OWNER = "An organization must have an owner. Make another member an owner first.";

export const roleSchema = z.enum(ROLES, { error: "must be owner, admin or member" });

const memberSchema = z.object({
  id: z.string(),
  username: z.string(),
  role: z.enum(ROLES),
  joined_at: timestamp,
});

export const listMembers = onOrganization({
  at: `GET ${PATH}`,
  summary: "List the members",
  output: z.object({ data: z.array(memberSchema) }),
  run: async ({ storage, organization }) => ({
    data: (await storage.members.list(organization.id)).map((member) => toJson(memberSchema, member)),
  }),
});

export const changeRole = onOrganization({
  at: `PATCH ${PATH}/{user_id}`,
  summary: "Change the role of a member",
  description: "Only owners can make owners, and change the role of one.",
  roles: MANAGERS,
  needsRecentSignIn: true,
  input: z.strictObject({ role: roleSchema }),
  output: z.object({ member: memberSchema.omit({ joined_at: true }) }),
  refuses: ["last_owner"],
  events: ["member.role_changed"],
  done: {
    "is-owner": "{} is now an owner.",
    "is-admin": "{} is now an admin.",
    "is-member": "{} is now a member.",
  },
  outcome: ({ role }) => `is-${role}`,
  about: ({ member }) => member.username,
  async run(request) {
    const { storage, params, input } = request;
    const target = targetOf(request, params.user_id);
    if (!target.manageableRoles.includes(input.role)) throw ownersOnly();
    assertChanged(await storage.members.changeRole({ ...target, ...input }));
    const { id, username } = await findMember(storage, request.organization.id, params.user_id);
    return { member: { id, username, ...input } };
  },
});

export const removeMember = onOrganization({
  at: `DELETE ${PATH}/{user_id}`,
  summary: "Remove a member",
  description: "The apps that the member authorized for the organization lose access.",
  roles: MANAGERS,
  input: z.strictObject({ delete_webhooks: deleteWebhooks }),
  refuses: ["last_owner"],
  events: ["member.removed"],
  done: { removed: "Member removed.", "removed-webhooks": "Member removed, and webhooks deleted." },
  outcome: ({ delete_webhooks }) => (delete_webhooks ? "removed-webhooks" : "removed"),
  async run(request) {
    const { storage, params, input } = request;
    const target = targetOf(request, params.user_id);
    assertChanged(await storage.members.remove({ ...target, deletesWebhooks: input.delete_webhooks }));
  },
});

export const leaveOrganization = onOrganization({
  at: `DELETE ${PATH}/me`,
  summary: "Leave an organization",
  description: "The apps that you authorized for the organization lose access.",
  input: z.strictObject({ delete_webhooks: deleteWebhooks }),
  refuses: ["last_owner"],
  events: ["member.removed"],
  done: {
    left: "You left the organization.",
    "left-webhooks": "You left the organization, and webhooks were deleted.",
  },
  outcome: (_, deletesWebhooks) => (deletesWebhooks ? "left-webhooks" : "left"),
  async run({ storage, organization, actor, member, input }) {
    const { user, role } = found(member, "member");
    const deletesWebhooks = input.delete_webhooks && MANAGERS.includes(role);
    const target = { organizationId: organization.id, userId: user.id, manageableRoles: [role], actor };
    assertChanged(await storage.members.remove({ ...target, deletesWebhooks }));
    return deletesWebhooks;
  },
});

function targetOf({ organization, actor, member }: OrganizationRequest, userId: string) {
  const { role } = found(member, "member");
  return { organizationId: organization.id, userId, actor, manageableRoles: manageableRoles(role) };
}

/** Returns the problem of a change to owners by a user who isn't an owner. */
export function ownersOnly(): Problem {
  return new Problem(403, "role_required", "Only owners can manage owners.");
}

function assertChanged(failure: MemberRefusal | undefined): void {
  if (failure === "missing") throw notFound("member");
  if (failure === "forbidden") throw ownersOnly();
  if (failure === "last_owner") throw new Problem(409, "last_owner", LAST_OWNER);
}

export const createResetLink = onOrganization({
  at: `POST ${PATH}/{user_id}/reset-link`,
  summary: "Create a password reset link for a member",
  description: "The link works once, within an hour. You must own all organizations of the user.",
  roles: ["owner"],
  needsRecentSignIn: true,
  output: z.object({ url: z.string().describe("The link, which is shown only once.") }),
  shownOnce: "url",
  refuses: ["shared_account", "no_password"],
  events: ["member.reset_link_created"],
  async run({ storage, urls, organization, actor, params }) {
    const { id } = await findMember(storage, organization.id, params.user_id);
    const caller = { organizationId: organization.id, actor };
    const created = await storage.accounts.createResetTokenAsOwner(id, RESET_LINK_MS, caller);
    // A user has one password for all organizations.
    if ("refused" in created)
      throw refusal(created.refused === "not_owner" ? "shared_account" : "no_password");
    return { url: resetUrl(urls.base, created.token) };
  },
});

/** Throws Problem 404. */
export async function findMember(
  { members }: Pick<OrganizationRequest["storage"], "members">,
  organizationId: string,
  userId: string | undefined,
): Promise<Member> {
  const listed = await members.list(organizationId);
  return foundIn(listed, userId, "member");
}

export const signOutMember = onOrganization({
  at: `POST ${PATH}/{user_id}/sign-out`,
  summary: "Sign out a member",
  description:
    "Revokes the apps that the member authorized for the organization. If you own every organization of the member, their sessions end, too.",
  roles: ["owner"],
  needsRecentSignIn: true,
  output: z.object({ sessions_ended: z.boolean() }),
  events: ["member.signed_out"],
  done: {
    "member-signed-out": "Member signed out, and their apps revoked.",
    "member-apps-revoked":
      "Apps revoked. The member stays signed in, because they also belong to organizations that you don’t own.",
  },
  outcome: (_, { sessions_ended }) => (sessions_ended ? "member-signed-out" : "member-apps-revoked"),
  async run({ storage, organization, actor, params }) {
    const member = { organizationId: organization.id, userId: params.user_id };
    const ended = found(await storage.disabledAccounts.signOutMember(member, actor), "member");
    return { sessions_ended: ended.hasEndedSessions };
  },
});
