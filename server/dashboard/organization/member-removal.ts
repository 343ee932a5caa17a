import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Member, MemberRefusal } from "../../../adapters/organizations/members.ts";
import { manageableRoles } from "../../../adapters/organizations/store.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { linkButton, panelForm } from "../../ui/controls.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { asksToDeleteWebhooks, webhookChoice } from "../created-webhooks.ts";
import { respondToChange } from "../responses.ts";
import { addForm, ORGANIZATION, type RouteOptions } from "../route.ts";
import { findMember } from "./member-accounts.ts";

type RemovalForm = {
  member: Pick<Member, "id" | "username" | "role">;
  action: string;
  cancel: string;
};

const PATH = `${ORGANIZATION}/members`;
const LAST_OWNER = "An organization must have an owner. Make another member an owner first.";

export function addRemovalRoutes(router: Router, { storage, allow }: RouteOptions): void {
  const { members } = storage;

  addForm(router, {
    path: `${PATH}/me/delete`,
    program: ["delete", `${PATH}/me`],
    access: allow(),
    section: "settings",
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
    async change(ctx) {
      const membership = membershipOf(ctx);
      const { id: userId, actor } = signedInUserOf(ctx);
      const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && isManager(membership);
      const { id: organizationId, role } = membership;
      assertChanged(
        await members.remove({ organizationId, userId, manageableRoles: [role], actor, deletesWebhooks }),
      );
      respondToChange(ctx, { to: "/dashboard", done: deletesWebhooks ? "left-webhooks" : "left" });
    },
  });

  addForm(router, {
    path: `${PATH}/:user_id/delete`,
    program: ["delete", `${PATH}/:user_id`],
    access: allow(...MANAGERS),
    section: "members",
    async render(ctx) {
      const member = await findMember(storage, ctx);
      if (!manageableRoles(membershipOf(ctx).role).includes(member.role)) throw ownersOnly();
      const cancel = pathTo(ctx, "members");
      const action = `${cancel}/${member.id}/delete`;
      return { title: "Remove member?", body: await removalForm(ctx, storage, { member, action, cancel }) };
    },
    async change(ctx) {
      const deletesWebhooks = await asksToDeleteWebhooks(ctx);
      assertChanged(await members.remove({ ...targetOf(ctx), deletesWebhooks }));
      const done = deletesWebhooks ? "removed-webhooks" : "removed";
      respondToChange(ctx, { to: pathTo(ctx, "members"), done });
    },
  });
}

/** Returns the problem of a change to owners by a user who isn't an owner. */
export function ownersOnly(): Problem {
  return new Problem(403, "role_required", "Only owners can manage owners.");
}

export function targetOf(ctx: Context) {
  const { id: organizationId, role } = membershipOf(ctx);
  const userId = ctx.params.user_id as string;
  return { organizationId, userId, actor: signedInUserOf(ctx).actor, manageableRoles: manageableRoles(role) };
}

export function assertChanged(refusal: MemberRefusal | undefined): void {
  if (refusal === "missing") throw notFound("member");
  if (refusal === "forbidden") throw ownersOnly();
  if (refusal === "last_owner") throw new Problem(409, "last_owner", LAST_OWNER);
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
