import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Member } from "../../../adapters/organizations/members.ts";
import { manageableRoles } from "../../../resources/access/scopes.ts";
import { describeApp } from "../../clients/app-identity.ts";
import {
  findMember,
  LAST_OWNER,
  leaveOrganization,
  ownersOnly,
  removeMember,
} from "../../operations/members.ts";
import { linkButton, panelForm } from "../../ui/controls.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { webhookChoice } from "../creator.ts";
import { addOperationPage } from "../operation-routes.ts";
import { ORGANIZATION, type RouteOptions } from "../route.ts";

type RemovalForm = {
  member: Pick<Member, "id" | "username" | "role">;
  action: string;
  cancel: string;
};

const PATH = `${ORGANIZATION}/members`;

export function addRemovalRoutes(router: Router, options: RouteOptions): void {
  const { storage } = options;
  const { members } = storage;

  // Before the removal of others, whose parameter would match the word.
  addOperationPage(router, options, leaveOrganization, {
    path: `${PATH}/me/delete`,
    section: "settings",
    to: () => "/dashboard",
    async render(ctx) {
      const { id, role } = membershipOf(ctx);
      const title = "Leave organization?";
      const [cancel, list] = [pathTo(ctx, "settings"), pathTo(ctx, "members")];
      const owners = (await members.list(id)).filter((one) => one.role === "owner");
      if (role === "owner" && owners.length === 1) {
        const body = html`<div class="panel narrow"><p>You’re the only owner. ${LAST_OWNER}</p>
<div class="actions">${linkButton(list, "Manage members")}${linkButton(cancel, "Cancel", "quiet")}</div></div>`;
        return { title, body };
      }
      const member = { ...signedInUserOf(ctx), role };
      return {
        title,
        body: await removalForm(ctx, storage, { member, action: `${list}/me/delete`, cancel }),
      };
    },
  });

  addOperationPage(router, options, removeMember, {
    path: `${PATH}/:user_id/delete`,
    section: "members",
    to: (ctx) => pathTo(ctx, "members"),
    async render(ctx) {
      const { id, role } = membershipOf(ctx);
      const member = await findMember(storage, id, ctx.params.user_id);
      if (!manageableRoles(role).includes(member.role)) throw ownersOnly();
      const cancel = pathTo(ctx, "members");
      const action = `${cancel}/${member.id}/delete`;
      return { title: "Remove member?", body: await removalForm(ctx, storage, { member, action, cancel }) };
    },
  });
}

async function removalForm(
  ctx: Context,
  { grants, webhooks }: RouteOptions["storage"],
  { member, action, cancel }: RemovalForm,
): Promise<Html> {
  const membership = membershipOf(ctx);
  const isOwn = member.id === signedInUserOf(ctx).id;
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
