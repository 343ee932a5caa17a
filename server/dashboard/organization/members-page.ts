import type { Invitation } from "../../../adapters/organizations/invitations.ts";
import type { Member } from "../../../adapters/organizations/members.ts";
import type { Membership, Role } from "../../../adapters/organizations/store.ts";
import { manageableRoles, ROLES, scopesOfRole, withoutImplied } from "../../../resources/access/scopes.ts";
import type { SignedInUser } from "../../http/state.ts";
import { badge, breakable, day, formButton, initial, named } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { type InvitationForm, invitationPanel, openInvitations } from "./invitations.ts";
import { capitalized } from "./pages.ts";

type MembersPage = {
  membership: Membership;
  user: Pick<SignedInUser, "id">;
  members: Member[];
  invitations: Invitation[];
  /** What the form for an invitation shows. */
  form: InvitationForm;
};

export function membersPage({ membership, user, members, invitations, form }: MembersPage): Html {
  const path = sectionPath(membership.id, "members");
  const isManageable = ({ role }: Member) => membership.role === "owner" || role !== "owner";
  const actions = (member: Member) =>
    isManageable(member) && member.id !== user.id ? memberActions(membership, member, path) : "";
  const columns: Columns<Member> = {
    Member: ({ id, username }) =>
      named(
        initial(username),
        html`<bdi>${breakable(username)}</bdi>${id === user.id && html` ${badge("you")}`}`,
      ),
    Role: ({ role }) => capitalized(role),
    Joined: ({ joinedAt }) => day(joinedAt),
  };
  return html`<div class="group">${table("Members", columns, members, isManager(membership) ? actions : undefined)}</div>
${isManager(membership) && html`${invitationPanel(membership, form)}${openInvitations(membership, invitations)}`}
${rolesPanel()}`;
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

function memberActions({ role: own }: Membership, member: Member, path: string): Html {
  const { id, username, role } = member;
  const others = manageableRoles(own).filter((one) => one !== role);
  return html`<details class="menu"><summary class="button quiet">Manage<span class="visually-hidden"> ${username}</span></summary><div class="sheet">${others.map(
    (one) =>
      formButton({
        action: `${path}/${id}`,
        text: ROLE_ACTIONS[one],
        about: username,
        fields: { role: one },
      }),
  )}${
    own === "owner" &&
    html`${formButton({
      action: `${path}/${id}/reset-link`,
      text: "Create reset link",
      about: `for ${username}`,
    })}<a href="${path}/${id}/sign-out">Sign out member<span class="visually-hidden"> ${username}</span></a>`
  }<a class="danger" href="${path}/${id}/delete">Remove member<span class="visually-hidden"> ${username}</span></a></div></details>`;
}

const ROLE_ACTIONS: Record<Role, string> = {
  owner: "Make owner",
  admin: "Make admin",
  member: "Make member",
};
