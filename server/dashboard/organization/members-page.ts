import type { Invitation } from "../../../adapters/invitations.ts";
import type { Member } from "../../../adapters/members.ts";
import { type Membership, ROLES, type Role } from "../../../adapters/organizations.ts";
import { type Html, html } from "../html.ts";
import {
  badge,
  breakable,
  copyable,
  csrfField,
  day,
  formButton,
  linkButton,
  select,
  time,
} from "./controls.ts";
import { isManager, sectionPath } from "./layout.ts";
import { capitalized } from "./organizations.ts";
import { type Column, table } from "./table.ts";

type MembersPage = {
  membership: Membership;
  person: { id: string; csrf?: string | undefined };
  people: Member[];
  invitations: Invitation[];
};

/** The members, and what a manager may do about them. */
export function membersPage({ membership, person, people, invitations }: MembersPage): Html {
  const { csrf } = person;
  const path = sectionPath(membership.id, "members");
  const canTouch = ({ role }: Member) => membership.role === "owner" || role !== "owner";
  const actions: Column<Member> = {
    head: "Actions",
    cell: (member) =>
      canTouch(member) && member.id !== person.id ? memberActions(membership, member, path, csrf) : "",
  };
  const columns: Column<Member>[] = [
    {
      head: "Member",
      cell: ({ id, username }) =>
        html`${breakable(username)}${id === person.id ? html` ${badge("you")}` : html``}`,
    },
    { head: "Role", cell: ({ role }) => capitalized(role) },
    { head: "Since", cell: ({ joinedAt }) => day(joinedAt) },
  ];
  return html`${table("Members", isManager(membership) ? [...columns, actions] : columns, people)}
${isManager(membership) ? invitationsOf(membership, invitations, csrf) : html``}`;
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
        text: `Make ${one}`,
        about: username,
        fields: { role: one },
      }),
  )}${
    own === "owner"
      ? formButton({
          action: `${path}/${id}/reset-link`,
          csrf,
          text: "Password link",
          about: `for ${username}`,
        })
      : html``
  }${formButton({ action: `${path}/${id}/delete`, csrf, text: "Remove", about: username, look: "danger" })}</div></details>`;
}

function invitationsOf({ id, role }: Membership, open: Invitation[], csrf: string | undefined): Html {
  const path = `${sectionPath(id, "overview")}/invitations`;
  const columns: Column<Invitation>[] = [
    { head: "Role", cell: (invitation) => capitalized(invitation.role) },
    { head: "Made by", cell: ({ createdBy }) => createdBy },
    { head: "Good until", cell: ({ expiresAt }) => time(expiresAt) },
    {
      head: "Actions",
      cell: (invitation) =>
        formButton({
          action: `${path}/${invitation.id}/delete`,
          csrf,
          text: "Take back",
          about: `the invitation of ${time(invitation.createdAt)}`,
          look: "danger",
        }),
    },
  ];
  return html`<section class="panel"><h2>Invite somebody</h2>
<p class="soft">Makes a link that you pass on yourself. It is good once, for seven days.</p>
<form method="post" action="${path}" class="row">${csrfField(csrf)}
${select({ name: "role", label: "Role", options: choices(role), value: "member" })}
<button type="submit">Make invitation link</button>
</form></section>
${open.length > 0 ? html`<section><h2>Open invitations</h2>${table("Open invitations", columns, open)}</section>` : html``}`;
}

function choices(own: Role): [string, string][] {
  return (own === "owner" ? ROLES : ROLES.slice(1)).map((role) => [role, capitalized(role)]);
}

/** Shows the link of a new invitation, once. */
export function invitationPage(
  organizationId: string,
  { url, expiresAt }: { url: string; expiresAt: number },
): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>Send it to the person you’re inviting. It works once and expires on ${time(expiresAt)}.</p>
<p>${copyable(url, "the link")}</p>
<div class="actions">${linkButton(sectionPath(organizationId, "members"), "Done")}</div>
</div>`;
}

/** Shows a password reset link, once. */
export function resetLinkPage(
  organizationId: string,
  { username, url }: { username: string; url: string },
): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>Send it to <strong>${username}</strong>. It works once and expires in an hour. Setting a new password signs ${username} out everywhere and revokes the apps they authorized.</p>
<p>${copyable(url, "the link")}</p>
<div class="actions">${linkButton(sectionPath(organizationId, "members"), "Done")}</div>
</div>`;
}

type Acceptance = {
  action: string;
  organization: string;
  role: Role;
  person: { username: string; csrf?: string | undefined };
};

/** Asks an invited person. */
export function acceptancePage({ action, organization, role, person }: Acceptance): Html {
  return html`<div class="panel"><p>You are invited to <strong>${organization}</strong>, with the role <strong>${role}</strong>, and are signed in as <strong>${person.username}</strong>.</p>
<form method="post" action="${action}">${csrfField(person.csrf)}<button type="submit">Join ${organization}</button></form></div>`;
}
