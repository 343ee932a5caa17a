import { z } from "zod";
import type { Member } from "../../../adapters/organizations/members.ts";
import { MANAGERS, ROLES } from "../../../resources/access/scopes.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { formFieldsOf, queryErrors, respondToChange, type Show, sendJson, showPage } from "../responses.ts";
import { addChange, ORGANIZATION, type RouteModule } from "../route.ts";
import { addInvitationRoutes } from "./invitations.ts";
import { addMemberAccountRoutes } from "./member-accounts.ts";
import { addRemovalRoutes, assertChanged, ownersOnly, targetOf } from "./member-removal.ts";
import { membersPage } from "./members-page.ts";

const PATH = `${ORGANIZATION}/members`;

const roleChange = z.strictObject({ role: z.enum(ROLES, { error: "must be owner, admin or member" }) });

export const memberRoutes: RouteModule = (router, options) => {
  const { settings, storage, allow } = options;
  const { members, invitations } = storage;

  const show: Show = async (ctx, _error, problem) => {
    const membership = membershipOf(ctx);
    const listed = await members.list(membership.id);
    if (!prefersHtml(ctx)) return sendJson(ctx, { data: listed.map(showMember) });
    const open = membership.role === "member" ? [] : await invitations.list(membership.id);
    const { error, errors } = queryErrors(problem, ["label", "email"]);
    const body = membersPage({
      membership,
      user: signedInUserOf(ctx),
      members: listed,
      invitations: open,
      form: {
        hasMail: settings.SMTP_URL !== undefined,
        typed: problem ? await formFieldsOf(ctx) : {},
        errors,
      },
    });
    const intro =
      "Owners have full access. Admins can do everything except manage owners and delete the organization.";
    showPage(ctx, { title: "Members", intro, section: "members", error, body });
  };

  router.get(PATH, allow(), (ctx) => show(ctx));
  addRemovalRoutes(router, options);
  addChange(router, ["patch", `${PATH}/:user_id`], { access: [allow(...MANAGERS)], show }, async (ctx) => {
    requireRecentSignIn(ctx, pathTo(ctx, "members"));
    const { role } = validate(roleChange, await formFieldsOf(ctx));
    const target = targetOf(ctx);
    if (!target.manageableRoles.includes(role)) throw ownersOnly();
    assertChanged(await members.changeRole({ ...target, role }));
    const body = { member: { id: target.userId, role } };
    respondToChange(ctx, { to: pathTo(ctx, "members"), done: "role-changed", body });
  });
  addMemberAccountRoutes(router, options, show);
  addInvitationRoutes(router, options, show);
};

function showMember({ joinedAt, ...member }: Member) {
  return { ...member, joined_at: new Date(joinedAt).toISOString() };
}
