import type { Member } from "../../../adapters/organizations/members.ts";
import type { Membership, Role } from "../../../adapters/organizations/store.ts";
import { manageableRoles, ROLES, scopesOfRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { changeRole, createResetLink, listMembers, signOutMember } from "../../operations/members.ts";
import { badge, breakable, day, formButton, initial, named } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { capitalized } from "../../ui/text.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { formFieldsOf, queryErrors, type Show } from "../forms.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { mayRun } from "../permissions.ts";
import { showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { addInvitationRoutes, invitationPanel, openInvitations } from "./invitations.ts";
import { addMemberRoutes } from "./member-actions.ts";

export const memberRoutes: RouteModule = (router, options) => {
  const { settings, storage } = options;

  const show: Show = async (ctx, _error, problem) => {
    const membership = membershipOf(ctx);
    const { id } = membership;
    const { error, errors } = queryErrors(problem, ["label", "email"]);
    const members = membersTable(membership, signedInUserOf(ctx).id, await storage.members.list(id));
    const form = {
      hasMail: settings.SMTP_URL !== undefined,
      typed: problem ? await formFieldsOf(ctx) : {},
      errors,
    };
    const body = html`<div class="group">${members}</div>
${isManager(membership) && html`${invitationPanel(membership, form)}${openInvitations(membership, await storage.invitations.list(id))}`}
${rolesPanel()}`;
    const intro =
      "Owners have full access. Admins can do everything except manage owners and delete the organization.";
    showPage(ctx, { title: "Members", intro, section: "members", error, body });
  };

  addReading(router, options, listMembers, (ctx) => show(ctx));
  addOperation(router, options, changeRole, {
    show,
    to: (ctx) => pathTo(ctx, "members"),
    action: "/dashboard/organizations/:id/members/:user_id",
  });
  addMemberRoutes(router, options, show);
  addInvitationRoutes(router, options, show);
};

function membersTable(membership: Membership, ownId: string, members: Member[]): Html {
  const columns: Columns<Member> = {
    Member: ({ id, username }) =>
      named(
        initial(username),
        html`<bdi>${breakable(username)}</bdi>${id === ownId && html` ${badge("you")}`}`,
      ),
    Role: ({ role }) => capitalized(role),
    Joined: ({ joinedAt }) => day(joinedAt),
  };
  const actions = (member: Member) =>
    manageableRoles(membership.role).includes(member.role) && member.id !== ownId
      ? memberActions(membership, member)
      : "";
  return table("Members", columns, members, isManager(membership) ? actions : undefined);
}

function rolesPanel(): Html {
  const columns: Columns<Role> = {
    Role: capitalized,
    "Maximum permissions": (role) =>
      html`${withoutImplied(scopesOfRole(role)).map((scope, index) => html`${index > 0 ? ", " : ""}<code>${scope}</code>`)}`,
  };
  return html`<section class="group"><div class="title"><div><h2>App permissions by role</h2>
<p class="intro">An app that a member authorizes never gets more than the member’s role allows. Write access includes read access.</p></div></div>
${table("App permissions by role", columns, ROLES)}</section>`;
}

function memberActions(membership: Membership, { id, username, role }: Member): Html {
  const path = sectionPath(membership.id, "members");
  const others = manageableRoles(membership.role).filter((one) => one !== role);
  return html`<details class="menu"><summary class="button quiet">Manage<span class="visually-hidden"> ${username}</span></summary><div class="sheet">${others.map(
    (one) =>
      formButton({
        action: `${path}/${id}`,
        text: ROLE_ACTIONS[one],
        about: username,
        fields: { role: one },
      }),
  )}${
    mayRun(membership, createResetLink) &&
    formButton({
      action: `${path}/${id}/reset-link`,
      text: "Create reset link",
      about: `for ${username}`,
    })
  }${
    mayRun(membership, signOutMember) &&
    html`<a href="${path}/${id}/sign-out">Sign out member<span class="visually-hidden"> ${username}</span></a>`
  }<a class="danger" href="${path}/${id}/delete">Remove member<span class="visually-hidden"> ${username}</span></a></div></details>`;
}

const ROLE_ACTIONS: Record<Role, string> = {
  owner: "Make owner",
  admin: "Make admin",
  member: "Make member",
};
