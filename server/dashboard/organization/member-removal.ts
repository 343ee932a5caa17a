import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Member } from "../../../adapters/organizations/members.ts";
import { manageableRoles, type Role } from "../../../adapters/organizations/store.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { csrfField, linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { asksToDeleteWebhooks, webhookChoice } from "../created-webhooks.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { assertChanged, LAST_OWNER, ownersOnly, targetOf } from "./member-change.ts";

type RemovalForm = {
  member: { username: string; role: Role };
  organizationName: string;
  /** Whether the member leaves. Otherwise, an owner or admin removes the member. */
  isOwn: boolean;
  /** The names of the apps that the member authorized for this organization. */
  apps: string[];
  /** The hosts of the webhooks that the member created; absent if the user can't manage webhooks. */
  webhookHosts: string[] | undefined;
  /** The path of the form, and that of its Cancel button. */
  action: string;
  back: string;
  csrf: string | undefined;
};

const PATH = `${ORGANIZATION}/members`;

type Options = Parameters<RouteModule>[1];

/** Adds the routes with which members leave, and with which owners and admins remove them. */
export function addRemovalRoutes(router: Router, options: Options): void {
  addLeaveRoutes(router, options);
  addMemberRoutes(router, options);
}

function addLeaveRoutes(router: Router, { storage, allow }: Options): void {
  const { members } = storage;

  const show: Show = async (ctx, error) => {
    const { id, role } = membershipOf(ctx);
    const user = signedInUserOf(ctx);
    const back = sectionPath(id, "overview");
    const title = "Leave organization?";
    const owners = (await members.list(id)).filter((one) => one.role === "owner");
    if (role === "owner" && owners.length === 1) {
      const path = sectionPath(id, "members");
      const body = html`<div class="panel"><p>You’re the only owner. ${LAST_OWNER}</p>
<div class="actions">${linkButton(path, "Manage members")}${linkButton(back, "Cancel", "quiet")}</div></div>`;
      return showPage(ctx, { title, section: "overview", error }, body);
    }
    const action = `${sectionPath(id, "members")}/me/delete`;
    const body = await formFor(ctx, storage, { ...user, role }, { action, back });
    showPage(ctx, { title, section: "overview", error }, body);
  };
  router.get(`${PATH}/me/delete`, allow(), (ctx) => show(ctx));

  const leave = async (ctx: Context) => {
    const membership = membershipOf(ctx);
    const { id: userId, actor } = signedInUserOf(ctx);
    const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && isManager(membership);
    const { id: organizationId, role } = membership;
    assertChanged(
      await members.remove({ organizationId, userId, manageableRoles: [role], actor, deletesWebhooks }),
    );
    respondToChange(ctx, { to: "/dashboard", done: deletesWebhooks ? "left-webhooks" : "left" });
  };
  router.delete(`${PATH}/me`, allow(), leave);
  router.post(`${PATH}/me/delete`, allow(), redisplayForm(show), leave);
}

function addMemberRoutes(router: Router, { storage, allow }: Options): void {
  const managers = allow(...MANAGERS);

  const show: Show = async (ctx, error) => {
    const { id, role } = membershipOf(ctx);
    const member = (await storage.members.list(id)).find((one) => one.id === ctx.params.user_id);
    if (!member) throw notFound("member");
    if (!manageableRoles(role).includes(member.role)) throw ownersOnly();
    const back = sectionPath(id, "members");
    const body = await formFor(ctx, storage, member, { action: `${back}/${member.id}/delete`, back });
    showPage(ctx, { title: "Remove member?", section: "members", error }, body);
  };
  router.get(`${PATH}/:user_id/delete`, managers, (ctx) => show(ctx));

  const remove = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const deletesWebhooks = await asksToDeleteWebhooks(ctx);
    const target = { ...targetOf(ctx), manageableRoles: manageableRoles(role) };
    assertChanged(await storage.members.remove({ ...target, deletesWebhooks }));
    const done = deletesWebhooks ? "removed-webhooks" : "removed";
    respondToChange(ctx, { to: sectionPath(id, "members"), done });
  };
  router.delete(`${PATH}/:user_id`, managers, remove);
  router.post(`${PATH}/:user_id/delete`, managers, redisplayForm(show), remove);
}

async function formFor(
  ctx: Context,
  storage: Options["storage"],
  member: Pick<Member, "id" | "username" | "role">,
  paths: { action: string; back: string },
) {
  const membership = membershipOf(ctx);
  const user = signedInUserOf(ctx);
  const [authorized, webhookHosts] = await Promise.all([
    storage.grants.listByOrganization(membership.id),
    isManager(membership)
      ? storage.webhooks.listCreatedHosts(membership.id, { userId: member.id })
      : undefined,
  ]);
  return memberRemovalForm({
    member,
    organizationName: membership.name,
    isOwn: member.id === user.id,
    apps: authorized.filter(({ userId }) => userId === member.id).map((app) => describeApp(app).name),
    webhookHosts,
    csrf: user.csrf,
    ...paths,
  });
}

/** Renders the page that says what removing a member does, and asks for confirmation. */
function memberRemovalForm(form: RemovalForm): Html {
  const { member, organizationName, isOwn, apps, webhookHosts, action, back, csrf } = form;
  const name = html`<bdi>${member.username}</bdi>`;
  const organization = html`<strong><bdi>${organizationName}</bdi></strong>`;
  const they = isOwn ? "you" : "they";
  return html`<form method="post" action="${action}" class="panel danger stack">${csrfField(csrf)}
<p>${isOwn ? html`You lose your access to ${organization} immediately, and need` : html`<strong>${name}</strong> loses access to ${organization} immediately, and needs`} a new invitation to return.</p>
<ul>
${lostApps(apps, they)}
${member.role === "member" ? html`` : html`<li>Unused invitation and password reset links that ${they} created stop working.</li>`}
<li>${webhookHosts ? "Links" : "Links and webhooks"} that ${they} created stay.</li>
<li>${isOwn ? "Your account and your" : "Their account and their"} other organizations aren’t affected.</li>
</ul>
${webhookChoice(webhookHosts ?? [], isOwn ? "you" : name)}
<div class="actions"><button type="submit" class="danger">${isOwn ? "Leave organization" : "Remove member"}</button>${linkButton(back, "Cancel", "quiet")}</div>
</form>`;
}

function lostApps(apps: string[], they: string): Html {
  if (apps.length === 0) return html``;
  const names = apps.toSorted().map((app, index) => html`${index > 0 ? ", " : ""}<bdi>${app}</bdi>`);
  return html`<li>${apps.length === 1 ? "The app" : `The ${apps.length} apps`} that ${they} authorized for this organization ${apps.length === 1 ? "loses" : "lose"} access: ${names}.</li>`;
}
