import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Member } from "../../../adapters/organizations/members.ts";
import { manageableRoles } from "../../../adapters/organizations/store.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { html } from "../../ui/html.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { asksToDeleteWebhooks } from "../created-webhooks.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { assertChanged, LAST_OWNER, ownersOnly, targetOf } from "./member-change.ts";
import { memberRemovalForm } from "./member-removal-form.ts";

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
