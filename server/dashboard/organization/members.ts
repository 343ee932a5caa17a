import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Member } from "../../../adapters/organizations/members.ts";
import { manageableRoles, ROLES } from "../../../adapters/organizations/store.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { assertChanged, ownersOnly, targetOf } from "./member-change.ts";
import { addRemovalRoutes } from "./member-removal.ts";
import { addSignOutRoutes } from "./member-sign-out.ts";
import { membersPage } from "./members-page.ts";
import { addResetLinkRoutes } from "./reset-links.ts";
import { addSecondFactorRoutes } from "./second-factor.ts";

const PATH = `${ORGANIZATION}/members`;

const roleChange = z.strictObject({ role: z.enum(ROLES, { error: "must be owner, admin or member" }) });

type Options = Parameters<RouteModule>[1];

/** Adds the routes that list members, change their roles, remove them and create their password reset links. */
export const memberRoutes: RouteModule = (router, options) => {
  const { allow } = options;
  const show = createShow(options);

  router.get(PATH, allow(), (ctx) => show(ctx));
  // Before the routes of one member, whose parameter would match its path.
  addSecondFactorRoutes(router, options, show);
  addRemovalRoutes(router, options);
  addManagementRoutes(router, options, show);
  addResetLinkRoutes(router, options, show);
  addSignOutRoutes(router, options);
};

function createShow({ settings, storage: { members, invitations, secondFactorRequirement } }: Options): Show {
  return async function show(ctx, error) {
    const membership = membershipOf(ctx);
    const listed = await members.list(membership.id);
    if (!prefersHtml(ctx)) {
      ctx.body = { data: listed.map(showMember) };
      return;
    }
    const open = membership.role === "member" ? [] : await invitations.list(membership.id);
    const user = signedInUserOf(ctx);
    const requiresFactor = await secondFactorRequirement.isRequired(membership.id);
    const body = membersPage({
      membership,
      user,
      members: listed,
      invitations: open,
      requiresFactor,
      hasMail: settings.SMTP_URL !== undefined,
    });
    const intro =
      "Owners have full access. Admins can do everything except manage owners and delete the organization.";
    showPage(ctx, { title: "Members", intro, section: "members", error }, body);
  };
}

function addManagementRoutes(router: Router, { storage: { members }, allow }: Options, show: Show): void {
  const managers = allow(...MANAGERS);

  const changeRole = async (ctx: Context) => {
    const { id, role: ownRole } = membershipOf(ctx);
    requireRecentSignIn(ctx, sectionPath(id, "members"));
    const { role } = validate(roleChange, await formFieldsOf(ctx));
    if (!manageableRoles(ownRole).includes(role)) throw ownersOnly();
    const { userId, ...target } = targetOf(ctx);
    assertChanged(
      await members.changeRole({ ...target, userId, manageableRoles: manageableRoles(ownRole), role }),
    );
    const body = { member: { id: userId, role } };
    respondToChange(ctx, { to: sectionPath(id, "members"), done: "role-changed", body });
  };
  router.patch(`${PATH}/:user_id`, managers, changeRole);
  router.post(`${PATH}/:user_id`, managers, redisplayForm(show), changeRole);
}

function showMember({ joinedAt, ...member }: Member) {
  return { ...member, joined_at: new Date(joinedAt).toISOString() };
}
