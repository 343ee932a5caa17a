import type { Context } from "koa";
import { changeRole, listMembers } from "../../operations/members.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { formFieldsOf, queryErrors, type Show } from "../forms.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { addInvitationRoutes } from "./invitations.ts";
import { addMemberAccountRoutes } from "./member-accounts.ts";
import { addRemovalRoutes } from "./member-removal.ts";
import { membersPage } from "./members-page.ts";

export const memberRoutes: RouteModule = (router, options) => {
  const { settings, storage } = options;
  const { members, invitations } = storage;
  const to = (ctx: Context) => pathTo(ctx, "members");

  const show: Show = async (ctx, _error, problem) => {
    const membership = membershipOf(ctx);
    const listed = await members.list(membership.id);
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

  addReading(router, options, listMembers, (ctx) => show(ctx));
  addRemovalRoutes(router, options);
  addOperation(router, options, changeRole, {
    show,
    to,
    action: "/dashboard/organizations/:id/members/:user_id",
  });
  addMemberAccountRoutes(router, options, show);
  addInvitationRoutes(router, options, show);
};
