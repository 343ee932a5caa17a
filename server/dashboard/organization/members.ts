import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Member } from "../../../adapters/organizations/members.ts";
import type { Membership, Role } from "../../../adapters/organizations/store.ts";
import { manageableRoles, ROLES, scopesOfRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { describeApp } from "../../clients/app-identity.ts";
import * as operations from "../../operations/members.ts";
import * as ui from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { capitalized } from "../../ui/text.ts";
import { mayRun, membershipOf, pathTo, rolesOf, signedInUserOf } from "../access.ts";
import { webhookChoice } from "../creator.ts";
import { formFieldsOf, queryErrors, type Show } from "../forms.ts";
import { shownOnce } from "../one-time-view.ts";
import { addOperation, addOperationPage, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule, type RouteOptions } from "../route.ts";
import { addInvitationRoutes, invitationPanel, openInvitations, roleMeanings } from "./invitations.ts";

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

  addReading(router, options, operations.listMembers, (ctx) => show(ctx));
  addMemberRoutes(router, options, show);
  addInvitationRoutes(router, options, show);
};

function membersTable(membership: Membership, ownId: string, members: Member[]): Html {
  const columns: Columns<Member> = {
    Member: ({ id, username }) =>
      ui.named(
        ui.initial(username),
        html`<bdi>${ui.breakable(username)}</bdi>${id === ownId && html` ${ui.badge("you")}`}`,
      ),
    Role: ({ role }) => capitalized(role),
    Joined: ({ joinedAt }) => ui.day(joinedAt),
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
      html`<a href="${path}/${id}/role?role=${one}">Make ${one}<span class="visually-hidden"> ${username}</span></a>`,
  )}${
    mayRun(membership, operations.createResetLink) &&
    ui.formButton({ action: `${path}/${id}/reset-link`, text: "Create reset link", about: `for ${username}` })
  }${
    mayRun(membership, operations.signOutMember) &&
    html`<a href="${path}/${id}/sign-out">Sign out member<span class="visually-hidden"> ${username}</span></a>`
  }<a class="danger" href="${path}/${id}/delete">Remove member<span class="visually-hidden"> ${username}</span></a></div></details>`;
}

const MEMBERS = `${ORGANIZATION}/members`;

type NewLink = { username: string; url: string };
/** What managers do with one member, and leaving. `show` is the page of the members. */
function addMemberRoutes(router: Router, options: RouteOptions, show: Show): void {
  const { storage } = options;
  const newLinks = options.oneTimeView<NewLink>();
  const to = (ctx: Context) => pathTo(ctx, "members");
  const find = (ctx: Context) => operations.findMember(storage, membershipOf(ctx).id, ctx.params.user_id);

  // Before the removal of others, whose parameter would match the word.
  addOperationPage(router, options, operations.leaveOrganization, {
    path: `${MEMBERS}/me/delete`,
    section: "settings",
    to: () => "/dashboard",
    async render(ctx) {
      const { id, role } = membershipOf(ctx);
      const title = "Leave organization?";
      const cancel = pathTo(ctx, "settings");
      const owners = (await storage.members.list(id)).filter((one) => one.role === "owner");
      if (role === "owner" && owners.length === 1) {
        const body = html`<div class="panel narrow"><p>You’re the only owner. ${operations.LAST_OWNER}</p>
<div class="actions">${ui.linkButton(to(ctx), "Manage members")}${ui.linkButton(cancel, "Cancel", "quiet")}</div></div>`;
        return { title, body };
      }
      const body = await removalForm(ctx, storage, { ...signedInUserOf(ctx), role }, cancel);
      return { title, body };
    },
  });

  addOperationPage(router, options, operations.changeRole, {
    path: `${MEMBERS}/:user_id/role`,
    action: `${MEMBERS}/:user_id`,
    section: "members",
    to,
    async render(ctx) {
      const { id, username } = await find(ctx);
      const given = ctx.query.role ?? (await formFieldsOf(ctx)).role;
      const role = operations.roleSchema.safeParse(given).data ?? "member";
      const submit = `Make ${username} ${role === "member" ? "a" : "an"} ${role}`;
      const form = { action: `${to(ctx)}/${id}`, submit, cancel: to(ctx) };
      const body = ui.panelForm(form, html`${ui.hidden("role", role)}${roleMeanings([role])}`);
      return { title: `${submit}?`, body };
    },
  });

  addOperationPage(router, options, operations.removeMember, {
    path: `${MEMBERS}/:user_id/delete`,
    section: "members",
    to,
    async render(ctx) {
      const member = await find(ctx);
      if (!manageableRoles(membershipOf(ctx).role).includes(member.role)) throw operations.ownersOnly();
      return { title: "Remove member?", body: await removalForm(ctx, storage, member, to(ctx)) };
    },
  });

  addOperation(router, options, operations.createResetLink, {
    show,
    to,
    async respond(ctx, { url }) {
      const { id, username } = await find(ctx);
      newLinks.redirect(ctx, `${to(ctx)}/${id}/reset-link`, { username, url });
    },
  });

  router.get(
    `${MEMBERS}/:user_id/reset-link/:view`,
    options.allow(...rolesOf(operations.createResetLink)),
    (ctx) => {
      const members = to(ctx);
      newLinks.show(ctx, {
        section: "members",
        page: (link) => ({ title: "Password reset link", body: resetLinkPage(members, link) }),
        kind: "link",
        explanation: shownOnce("A password reset link", "If you didn’t copy it, create a new one."),
        back: { href: members, text: "Back to members" },
      });
    },
  );

  addOperationPage(router, options, operations.signOutMember, {
    path: `${MEMBERS}/:user_id/sign-out`,
    section: "members",
    to,
    async render(ctx) {
      const { id, username } = await find(ctx);
      const path = `${to(ctx)}/${id}/sign-out`;
      return { title: `Sign out ${username}?`, body: signOutForm(path, to(ctx), membershipOf(ctx).name) };
    },
  });
}

function resetLinkPage(members: string, { username, url }: NewLink): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the link now. You won’t be able to see it again.</p>
<p>Send it to <strong>${username}</strong>. It works once and expires in an hour. Setting a new password signs ${username} out everywhere and revokes the apps they authorized.</p>
<p>${ui.copyable(url, "link")}</p>
<div class="actions">${ui.linkButton(members, "Done")}</div>
</div>`;
}

function signOutForm(action: string, cancel: string, organization: string): Html {
  return ui.panelForm(
    { action, submit: "Sign out member", cancel, danger: "panel" },
    html`<ul>
<li>The apps that this member authorized for ${organization} lose access.</li>
<li>If you own every organization of this member, their sessions end, too. Otherwise they stay signed in, because a session also gives access to other organizations.</li>
</ul>
<p>The member can sign in and authorize apps again. To prevent that, remove the member.</p>`,
  );
}

async function removalForm(
  ctx: Context,
  { grants, webhooks }: RouteOptions["storage"],
  member: Pick<Member, "id" | "username" | "role">,
  cancel: string,
): Promise<Html> {
  const membership = membershipOf(ctx);
  const isOwn = member.id === signedInUserOf(ctx).id;
  const action = `${pathTo(ctx, "members")}/${isOwn ? "me" : member.id}/delete`;
  const [authorized, webhookHosts] = await Promise.all([
    grants.listByOrganization(membership.id),
    isManager(membership) ? webhooks.listCreatedHosts(membership.id, { userId: member.id }) : undefined,
  ]);
  const apps = authorized.filter(({ userId }) => userId === member.id).map((app) => describeApp(app).name);
  const name = html`<bdi>${member.username}</bdi>`;
  const organization = html`<strong><bdi>${membership.name}</bdi></strong>`;
  const they = isOwn ? "you" : "they";
  const submit = isOwn ? "Leave organization" : "Remove member";
  return ui.panelForm(
    { action, submit, cancel, danger: "panel" },
    html`<p>${isOwn ? html`You lose your access to ${organization} immediately, and need` : html`<strong>${name}</strong> loses access to ${organization} immediately, and needs`} a new invitation to return.</p>
<ul>
${lostApps(apps, they)}
${member.role !== "member" && html`<li>Unused invitation and password reset links that ${they} created stop working.</li>`}
<li>${webhookHosts ? "Links" : "Links and webhooks"} that ${they} created stay.</li>
<li>${isOwn ? "Your account and your" : "Their account and their"} other organizations aren’t affected.</li>
</ul>
${webhookChoice(webhookHosts ?? [], isOwn ? "you" : name)}`,
  );
}

function lostApps(apps: string[], they: string): Html {
  if (apps.length === 0) return html``;
  const names = apps.toSorted().map((app, index) => html`${index > 0 ? ", " : ""}<bdi>${app}</bdi>`);
  return html`<li>${apps.length === 1 ? "The app" : `The ${apps.length} apps`} that ${they} authorized for this organization ${apps.length === 1 ? "loses" : "lose"} access: ${names}.</li>`;
}
