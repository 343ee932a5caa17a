import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Member } from "../../../adapters/organizations/members.ts";
import { manageableRoles } from "../../../resources/access/scopes.ts";
import { describeApp } from "../../clients/app-identity.ts";
import {
  createResetLink,
  findMember,
  LAST_OWNER,
  leaveOrganization,
  ownersOnly,
  removeMember,
  signOutMember,
} from "../../operations/members.ts";
import { copyable, linkButton, panelForm } from "../../ui/controls.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { webhookChoice } from "../creator.ts";
import type { Show } from "../forms.ts";
import { shownOnce } from "../one-time-view.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import { rolesOf } from "../permissions.ts";
import { ORGANIZATION, type RouteOptions } from "../route.ts";

const MEMBERS = `${ORGANIZATION}/members`;

type NewLink = { username: string; url: string };
type LeavingMember = Pick<Member, "id" | "username" | "role">;

/** What managers do with one member, and leaving. `show` is the page of the members. */
export function addMemberRoutes(router: Router, options: RouteOptions, show: Show): void {
  const { storage } = options;
  const newLinks = options.oneTimeView<NewLink>();
  const to = (ctx: Context) => pathTo(ctx, "members");
  const find = (ctx: Context) => findMember(storage, membershipOf(ctx).id, ctx.params.user_id);

  // Before the removal of others, whose parameter would match the word.
  addOperationPage(router, options, leaveOrganization, {
    path: `${MEMBERS}/me/delete`,
    section: "settings",
    to: () => "/dashboard",
    async render(ctx) {
      const { id, role } = membershipOf(ctx);
      const title = "Leave organization?";
      const cancel = pathTo(ctx, "settings");
      const owners = (await storage.members.list(id)).filter((one) => one.role === "owner");
      if (role === "owner" && owners.length === 1) {
        const body = html`<div class="panel narrow"><p>You’re the only owner. ${LAST_OWNER}</p>
<div class="actions">${linkButton(to(ctx), "Manage members")}${linkButton(cancel, "Cancel", "quiet")}</div></div>`;
        return { title, body };
      }
      const body = await removalForm(ctx, storage, { ...signedInUserOf(ctx), role }, cancel);
      return { title, body };
    },
  });

  addOperationPage(router, options, removeMember, {
    path: `${MEMBERS}/:user_id/delete`,
    section: "members",
    to,
    async render(ctx) {
      const member = await find(ctx);
      if (!manageableRoles(membershipOf(ctx).role).includes(member.role)) throw ownersOnly();
      return { title: "Remove member?", body: await removalForm(ctx, storage, member, to(ctx)) };
    },
  });

  addOperation(router, options, createResetLink, {
    show,
    to,
    async respond(ctx, { url }) {
      const { id, username } = await find(ctx);
      newLinks.redirect(ctx, `${to(ctx)}/${id}/reset-link`, { username, url });
    },
  });

  router.get(`${MEMBERS}/:user_id/reset-link/:view`, options.allow(...rolesOf(createResetLink)), (ctx) => {
    const members = to(ctx);
    newLinks.show(ctx, {
      section: "members",
      page: (link) => ({ title: "Password reset link", body: resetLinkPage(members, link) }),
      kind: "link",
      explanation: shownOnce("A password reset link", "If you didn’t copy it, create a new one."),
      back: { href: members, text: "Back to members" },
    });
  });

  addOperationPage(router, options, signOutMember, {
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
<p>${copyable(url, "link")}</p>
<div class="actions">${linkButton(members, "Done")}</div>
</div>`;
}

function signOutForm(action: string, cancel: string, organization: string): Html {
  return panelForm(
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
  member: LeavingMember,
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
  return panelForm(
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
