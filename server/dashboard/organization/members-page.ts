import type { Invitation } from "../../../adapters/organizations/invitations.ts";
import type { Member } from "../../../adapters/organizations/members.ts";
import { type Membership, ROLES, type Role } from "../../../adapters/organizations/store.ts";
import { scopesOfRole, withoutImplied } from "../../../resources/access/scopes.ts";
import type { SignedInUser } from "../../auth/authenticate.ts";
import {
  badge,
  breakable,
  copyable,
  csrfField,
  day,
  field,
  formatTime,
  formButton,
  linkButton,
  select,
  time,
} from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { invitationSentence, type ShownInvitation } from "../../ui/invitation.ts";
import { type Column, table } from "../../ui/table.ts";
import { capitalized } from "./pages.ts";
import { secondFactorPanel } from "./second-factor.ts";

type MembersPage = {
  membership: Membership;
  user: Pick<SignedInUser, "id" | "csrf" | "secondFactor">;
  members: Member[];
  invitations: Invitation[];
  requiresFactor: boolean;
  /** Whether the server can email invitations. */
  hasMail: boolean;
};

/** Renders the members and, for managers, the controls to manage and invite them. */
export function membersPage({
  membership,
  user,
  members,
  invitations,
  requiresFactor,
  hasMail,
}: MembersPage): Html {
  const { csrf } = user;
  const path = sectionPath(membership.id, "members");
  const isManageable = ({ role }: Member) => membership.role === "owner" || role !== "owner";
  const actions: Column<Member> = {
    head: "Actions",
    cell: (member) =>
      isManageable(member) && member.id !== user.id ? memberActions(membership, member, path, csrf) : "",
  };
  const columns: Column<Member>[] = [
    {
      head: "Member",
      cell: ({ id, username }) =>
        html`<bdi>${breakable(username)}</bdi>${id === user.id ? html` ${badge("you")}` : html``}`,
    },
    { head: "Role", cell: ({ role }) => capitalized(role) },
    { head: "Joined", cell: ({ joinedAt }) => day(joinedAt) },
  ];
  return html`${table("Members", isManager(membership) ? [...columns, actions] : columns, members)}
${rolesPanel()}
${isManager(membership) ? html`${invitationsOf(membership, invitations, hasMail, csrf)}${secondFactorPanel({ membership, user, isRequired: requiresFactor })}` : html``}`;
}

/** Shows which scopes an app can have on behalf of each role. */
function rolesPanel(): Html {
  const columns: Column<Role>[] = [
    { head: "Role", cell: capitalized },
    {
      head: "Apps may have",
      cell: (role) =>
        html`${withoutImplied(scopesOfRole(role)).map((scope, index) => html`${index > 0 ? ", " : ""}<code>${scope}</code>`)}`,
    },
  ];
  return html`<section><h2>What roles may let apps do</h2>
<p class="soft">An app that a member authorizes never gets more than the member’s role allows. A scope to write includes the one to read.</p>
${table("What roles may let apps do", columns, [...ROLES])}</section>`;
}

function memberActions(
  { role: own }: Membership,
  member: Member,
  path: string,
  csrf: string | undefined,
): Html {
  const { id, username, role } = member;
  const others = (own === "owner" ? ROLES : ROLES.slice(1)).filter((one) => one !== role);
  return html`<details class="menu"><summary class="button quiet">Manage<span class="visually-hidden"> ${username}</span></summary><div class="sheet">${others.map(
    (one) =>
      formButton({
        action: `${path}/${id}`,
        csrf,
        text: ROLE_ACTIONS[one],
        about: username,
        fields: { role: one },
      }),
  )}${
    own === "owner"
      ? html`${formButton({
          action: `${path}/${id}/reset-link`,
          csrf,
          text: "Create reset link",
          about: `for ${username}`,
        })}<a href="${path}/${id}/sign-out">Sign out member<span class="visually-hidden"> ${username}</span></a>`
      : html``
  }<a class="danger" href="${path}/${id}/delete">Remove member<span class="visually-hidden"> ${username}</span></a></div></details>`;
}

const ROLE_ACTIONS: Record<Role, string> = {
  owner: "Make owner",
  admin: "Make admin",
  member: "Make member",
};

function invitationsOf(
  { id, role }: Membership,
  open: Invitation[],
  hasMail: boolean,
  csrf: string | undefined,
): Html {
  const path = `${sectionPath(id, "overview")}/invitations`;
  const columns: Column<Invitation>[] = [
    { head: "Role", cell: (invitation) => capitalized(invitation.role) },
    ...(open.some(({ email }) => email)
      ? [{ head: "Sent to", cell: ({ email }: Invitation) => (email ? breakable(email) : "–") }]
      : []),
    { head: "Created by", cell: ({ createdBy }) => createdBy },
    { head: "Expires", cell: ({ expiresAt }) => time(expiresAt) },
    {
      head: "Actions",
      cell: (invitation) =>
        formButton({
          action: `${path}/${invitation.id}/delete`,
          csrf,
          text: "Revoke",
          about: `invitation from ${formatTime(invitation.createdAt)}`,
          look: "danger",
        }),
    },
  ];
  return html`<section class="panel"><h2>Invite a member</h2>
<p class="soft">Creates a single-use link, valid for 7 days, for you to send.${hasMail ? " We also send it to the email address, if you enter one." : ""}</p>
<form method="post" action="${path}" class="row">${csrfField(csrf)}
${select({ name: "role", label: "Role", options: choices(role), value: "member" })}
${hasMail ? field({ name: "email", label: "Email address (optional)", type: "email", attributes: html`maxlength="254" autocomplete="off"` }) : html``}
<button type="submit">Create invitation link</button>
</form></section>
${open.length > 0 ? html`<section><h2>Open invitations</h2>${table("Open invitations", columns, open)}</section>` : html``}`;
}

function choices(own: Role): [string, string][] {
  return (own === "owner" ? ROLES : ROLES.slice(1)).map((role) => [role, capitalized(role)]);
}

/** A new invitation link. `email` is the address that it is sent to. */
export type NewLink = { url: string; expiresAt: number; email: string | null };

/** Renders the page that shows a new invitation link once. */
export function invitationPage(organizationId: string, { url, expiresAt, email }: NewLink): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>${email ? html`We’re emailing it to <strong><bdi>${email}</bdi></strong>.` : "Send it to the person you’re inviting."} It works once and expires on ${time(expiresAt)}.</p>
<p>${copyable(url, "link")}</p>
<div class="actions">${linkButton(sectionPath(organizationId, "members"), "Done")}</div>
</div>`;
}

/** Renders the page that shows a password reset link once. */
export function resetLinkPage(
  organizationId: string,
  { username, url }: { username: string; url: string },
): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>Send it to <strong>${username}</strong>. It works once and expires in an hour. Setting a new password signs ${username} out everywhere and revokes the apps they authorized.</p>
<p>${copyable(url, "link")}</p>
<div class="actions">${linkButton(sectionPath(organizationId, "members"), "Done")}</div>
</div>`;
}

type Acceptance = {
  action: string;
  invitation: ShownInvitation;
  user: { username: string; csrf?: string | undefined };
  /** Whether the user is a member of the organization already. */
  isMember: boolean;
};

/** Renders the page that asks an invited user to join. */
export function acceptancePage({ action, invitation, user, isMember }: Acceptance): Html {
  if (isMember) {
    return html`<div class="panel"><p>You’re already a member of <strong><bdi>${invitation.organizationName}</bdi></strong>. You’re signed in as <strong><bdi>${user.username}</bdi></strong>.</p>
<p>The invitation is for someone else. It stays valid until they accept it.</p>
${linkButton("/dashboard", "Go to the dashboard")}</div>`;
  }
  return html`<div class="panel"><p>${invitationSentence(invitation)} You’re signed in as <strong><bdi>${user.username}</bdi></strong>.</p>
<form method="post" action="${action}">${csrfField(user.csrf)}<button type="submit">Join ${invitation.organizationName}</button></form>
<p class="hint">To join with another account, sign out and open the invitation again.</p></div>`;
}
