import type { Context } from "koa";
import { z } from "zod";
import type { Member, MemberRefusal } from "../../adapters/members.ts";
import { ROLES, rolesWithin } from "../../adapters/organizations.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import { prefersHtml } from "../people/input.ts";
import { requireRecentSignIn } from "../people/person.ts";
import { RESET_LINK_MS, resetUrl } from "../reset.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { membersPage, resetLinkPage } from "../views/dashboard/members.ts";
import { MANAGERS, membershipOf, personOf } from "./access.ts";
import { again, answerDone, fieldsOf, type Show, showPage } from "./answers.ts";
import { showAlreadyShown } from "./one-time-view.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const change = z.strictObject({ role: z.enum(ROLES, { error: "must be owner, admin or member" }) });

/** Members: who they are, their roles, how they go. */
export const members: Subject = (router, { storage, addresses, allow, oneTimeView }) => {
  const { members, invitations, accounts } = storage;
  const newLinks = oneTimeView<{ username: string; url: string }>();

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const people = await members.list(membership.id);
    if (!prefersHtml(ctx)) {
      ctx.body = { data: people.map(showMember) };
      return;
    }
    const open = membership.role === "member" ? [] : await invitations.list(membership.id);
    const body = membersPage({ membership, person: personOf(ctx), people, invitations: open });
    const intro = "Owners run everything; admins run all but owners and the end of the organization.";
    showPage(ctx, { title: "Members", intro, section: "members", error }, body);
  };
  router.get(`${ORGANIZATION}/members`, allow(), (ctx) => show(ctx));

  const changeRole = async (ctx: Context) => {
    const { id, role: own } = membershipOf(ctx);
    const { role } = validate(change, await fieldsOf(ctx));
    if (!rolesWithin(own).includes(role)) throw ownersOnly();
    const userId = ctx.params.user_id as string;
    refuse(await members.changeRole({ ...target(ctx), touches: rolesWithin(own), role }));
    const to = sectionPath(id, "members");
    answerDone(ctx, { to, done: "role-changed", body: { member: { id: userId, role } } });
  };
  router.patch(`${ORGANIZATION}/members/:user_id`, allow(...MANAGERS), changeRole);
  router.post(`${ORGANIZATION}/members/:user_id`, allow(...MANAGERS), again(show), changeRole);

  const leave = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const { id: userId, by } = personOf(ctx);
    refuse(await members.remove({ organizationId: id, userId, touches: [role], by }));
    answerDone(ctx, { to: "/dashboard", done: "left" });
  };
  router.delete(`${ORGANIZATION}/members/me`, allow(), leave);
  router.post(`${ORGANIZATION}/members/me/delete`, allow(), again(show), leave);

  const remove = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    refuse(await members.remove({ ...target(ctx), touches: rolesWithin(role) }));
    answerDone(ctx, { to: sectionPath(id, "members"), done: "removed" });
  };
  router.delete(`${ORGANIZATION}/members/:user_id`, allow(...MANAGERS), remove);
  router.post(`${ORGANIZATION}/members/:user_id/delete`, allow(...MANAGERS), again(show), remove);

  router.post(`${ORGANIZATION}/members/:user_id/reset-link`, allow("owner"), again(show), async (ctx) => {
    const { id } = membershipOf(ctx);
    requireRecentSignIn(ctx, sectionPath(id, "members"));
    const { userId, by } = target(ctx);
    const member = (await members.list(id)).find((one) => one.id === userId);
    if (!member) throw notFound("member");
    const owner = { by, organizationId: id };
    const created = await accounts.createResetTokenAsOwner(userId, RESET_LINK_MS, owner);
    if ("refused" in created) throw noResetLink[created.refused]();
    const url = resetUrl(addresses.base, created.token);
    if (!prefersHtml(ctx)) {
      ctx.body = { url };
      return;
    }
    const path = `${sectionPath(id, "members")}/${userId}/reset-link`;
    newLinks.redirect(ctx, path, { username: member.username, url });
  });

  router.get(`${ORGANIZATION}/members/:user_id/reset-link/:view`, allow("owner"), (ctx) => {
    const { id } = membershipOf(ctx);
    const link = newLinks.open(ctx);
    if (link)
      return showPage(ctx, { title: "Password reset link", section: "members" }, resetLinkPage(id, link));
    showAlreadyShown(ctx, "members", {
      kind: "link",
      name: "A password reset link",
      advice: "If you didn’t copy it, create a new one.",
      back: { href: sectionPath(id, "members"), text: "Back to members" },
    });
  });
};

// A password opens every organization of its user.
const noResetLink = {
  not_owner: () =>
    new Problem(
      403,
      "not_yours_alone",
      "This user belongs to an organization that you don't own. Ask the operator of this service for a reset link.",
    ),
  no_password: () =>
    new Problem(409, "no_password", "This user signs in with SSO and has no password to reset."),
};

/** The refusal of what only owners decide. */
export function ownersOnly(): Problem {
  return new Problem(403, "role_required", "Only owners decide about owners.");
}

/** The member in the address, and who changes him or her. */
function target(ctx: Context) {
  const organizationId = membershipOf(ctx).id;
  return { organizationId, userId: ctx.params.user_id as string, by: personOf(ctx).by };
}

function refuse(refusal: MemberRefusal | undefined): void {
  if (refusal === "missing") throw notFound("member");
  if (refusal === "forbidden") throw ownersOnly();
  if (refusal === "last_owner") {
    throw new Problem(409, "last_owner", "An organization needs an owner: make somebody else one first.");
  }
}

function showMember({ joinedAt, ...member }: Member) {
  return { ...member, joined_at: new Date(joinedAt).toISOString() };
}
