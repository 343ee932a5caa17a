import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Invitation } from "../../../adapters/organizations/invitations.ts";
import type { Membership, Role } from "../../../adapters/organizations/store.ts";
import { manageableRoles } from "../../../resources/access/scopes.ts";
import { NAME_MAX } from "../../credentials/names.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import {
  acceptInvitation,
  createInvitation,
  getInvitation,
  listInvitations,
  revokeInvitation,
} from "../../operations/invitations.ts";
import type { Result } from "../../operations/operation.ts";
import * as ui from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { invitationSentence, type ShownInvitation } from "../../ui/sign-in.ts";
import { type Columns, table } from "../../ui/table.ts";
import { capitalized, formatTime } from "../../ui/text.ts";
import { membershipOf, pathTo, rolesOf, signedInUserOf } from "../access.ts";
import type { FieldErrors, Show } from "../forms.ts";
import { shownOnce } from "../one-time-view.ts";
import { addOperation, addReading, runOperation } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteOptions } from "../route.ts";

type Created = Result<typeof createInvitation>;

/** An invitation link works once. `show` is the page with the form. */
export function addInvitationRoutes(router: Router, options: RouteOptions, show: Show): void {
  const newLinks = options.oneTimeView<Created>();
  const to = (ctx: Context) => pathTo(ctx, "members");

  addReading(router, options, listInvitations, (ctx) => ctx.redirect(to(ctx)));

  addOperation(router, options, createInvitation, {
    show,
    to,
    respond: (ctx, created) =>
      newLinks.redirect(ctx, `${invitationsPath(membershipOf(ctx).id)}/new-link`, created),
  });

  router.get(
    `${ORGANIZATION}/invitations/new-link/:view`,
    options.allow(...rolesOf(createInvitation)),
    (ctx) => {
      const members = to(ctx);
      newLinks.show(ctx, {
        section: "members",
        page: (created) => ({ title: "Invitation link", body: invitationPage(members, created) }),
        kind: "link",
        explanation: shownOnce(
          "An invitation link",
          "If you didn’t copy it, revoke the invitation and create a new one.",
        ),
        back: { href: members, text: "Back to members" },
      });
    },
  );

  addOperation(router, options, revokeInvitation, { to });

  addReading(router, options, getInvitation, async (ctx) => {
    const { organization, role, invited_by: inviter } = await runOperation(ctx, options, getInvitation);
    const { id, username } = signedInUserOf(ctx);
    const memberships = await options.storage.organizations.listByUser(id);
    if (memberships.some((one) => one.id === organization.id))
      return showPage(ctx, { title: "Invitation", body: alreadyMember(organization.name, username) });
    const invitation = { organizationName: organization.name, role, inviter };
    const body = acceptanceForm(ctx.path, invitation, username);
    showPage(ctx, { title: `Join ${organization.name}`, body });
  });
  addOperation(router, options, acceptInvitation, {
    to: (_, accepted) => sectionPath(accepted.organization.id, "overview"),
  });
}

/** What the form for an invitation shows: whether it can be emailed, and a rejected one with its errors. */
type InvitationForm = { hasMail: boolean; typed: Input; errors: FieldErrors };

const ROLE_MEANINGS: Record<Role, string> = {
  owner: "Full access, including other owners and the deletion of the organization.",
  admin: "Everything except managing owners and deleting the organization.",
  member: "Creates and edits links, sees their clicks, and authorizes apps for this.",
};

export function invitationPanel({ id, role }: Membership, { hasMail, typed, errors }: InvitationForm): Html {
  const roles = manageableRoles(role).map((one) => [one, capitalized(one)] as const);
  return html`<section class="panel"><h2>Invite a member</h2>
<p class="soft">Creates a single-use link, valid for 7 days, for you to send.${hasMail ? " We also send it to the email address, if you enter one." : ""}</p>
<form method="post" action="${invitationsPath(id)}" class="row">${ui.CSRF_FIELD}
${ui.select({ name: "role", label: "Role", options: roles, value: textFieldOf(typed.role) || "member" })}
${ui.field({ name: "label", label: "Note (optional), such as “Anna from marketing”", value: textFieldOf(typed.label), error: errors.label, attributes: html`maxlength="${NAME_MAX}" autocomplete="off"` })}
${hasMail && ui.field({ name: "email", label: "Email address (optional)", type: "email", value: textFieldOf(typed.email), error: errors.email, attributes: html`maxlength="254" autocomplete="off"` })}
<button type="submit">${ui.icon("user-plus")}Create invitation link</button>
</form>
${roleMeanings(manageableRoles(role))}</section>`;
}

export function roleMeanings(roles: readonly Role[]): Html {
  return html`<dl class="facts">${roles.map((one) => html`<dt>${capitalized(one)}</dt><dd class="soft">${ROLE_MEANINGS[one]}</dd>`)}</dl>`;
}

export function openInvitations({ id }: Membership, open: Invitation[]): Html {
  if (open.length === 0) return html``;
  const columns: Columns<Invitation> = {
    For: ({ label, email }) => {
      const sent = email && html`<span class="soft">sent to ${ui.breakable(email)}</span>`;
      if (!label) return email ? html`${ui.breakable(email)}` : "–";
      return html`<bdi>${label}</bdi>${sent && html`<br>${sent}`}`;
    },
    Role: (invitation) => capitalized(invitation.role),
    "Created by": ({ createdBy }) => html`<bdi>${ui.breakable(createdBy)}</bdi>`,
    Expires: ({ expiresAt }) => ui.time(expiresAt),
  };
  const revokeButton = ({ id: invitationId, label, email, createdAt }: Invitation) =>
    ui.formButton({
      action: `${invitationsPath(id)}/${invitationId}/delete`,
      text: "Revoke",
      about: `invitation ${label || email ? `for ${label ?? email} ` : ""}from ${formatTime(createdAt)}`,
      look: "danger",
    });
  return html`<section class="group"><div class="title"><h2>Open invitations</h2></div>${table("Open invitations", columns, open, revokeButton)}</section>`;
}

function invitationsPath(organizationId: string): string {
  return `${sectionPath(organizationId, "overview")}/invitations`;
}

function invitationPage(members: string, { url, invitation }: Created): Html {
  const { label, email, expires_at } = invitation;
  const recipient = label ? html`<strong><bdi>${label}</bdi></strong>` : "the person you’re inviting";
  return html`<div class="panel narrow" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>${email ? html`We’re emailing it to <strong><bdi>${email}</bdi></strong>.` : html`Send it to ${recipient}.`} It works once and expires on ${ui.time(Date.parse(expires_at))}.</p>
<p>${ui.copyable(url, "link")}</p>
<div class="actions">${ui.linkButton(members, "Done")}</div>
</div>`;
}

function alreadyMember(organization: string, username: string): Html {
  return html`<div class="panel"><p>You’re already a member of <strong><bdi>${organization}</bdi></strong>. You’re signed in as <strong><bdi>${username}</bdi></strong>.</p>
<p>The invitation is for someone else. It stays valid until they accept it.</p>
${ui.linkButton("/dashboard", "Go to the dashboard")}</div>`;
}

function acceptanceForm(action: string, invitation: ShownInvitation, username: string): Html {
  return html`<div class="panel"><p>${invitationSentence(invitation)} You’re signed in as <strong><bdi>${username}</bdi></strong>.</p>
<form method="post" action="${action}">${ui.CSRF_FIELD}<button type="submit">Join ${invitation.organizationName}</button></form>
<p class="hint">To join with another account, sign out and open the invitation again.</p></div>`;
}
