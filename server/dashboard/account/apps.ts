import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { prefersHtml } from "../../http/request-body.ts";
import type { SignedInUser } from "../../http/state.ts";
import { html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { ACCOUNT, signedInUserOf } from "../access.ts";
import { appRevocationForm, authorizedAppsTable, showApp, shownAppOf } from "../authorized-apps.ts";
import { asksToDeleteWebhooks } from "../created-webhooks.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import { addForm } from "../route.ts";

const PATH = `${ACCOUNT}/apps`;
const INTRO =
  "Apps that act for you, in all of your organizations. Revoking access takes effect immediately.";

type Options = {
  storage: Pick<Storage, "grants" | "organizations" | "secondFactorRequirement" | "webhooks">;
};

export function accountAppRoutes(router: Router, { storage }: Options): void {
  const { grants, organizations, webhooks } = storage;
  router.get(PATH, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const [authorized, memberships] = await Promise.all([
      grants.listByUser(id),
      organizations.listByUser(id),
    ]);
    const names = new Map(memberships.map((one) => [one.id, one.name]));
    const apps = authorized.map((app) => ({
      ...shownAppOf(app),
      organization: { id: app.organizationId, name: names.get(app.organizationId) ?? app.organizationId },
    }));
    if (!prefersHtml(ctx))
      return sendJson(ctx, {
        data: apps.map((app) => ({ ...showApp(app), organization: app.organization })),
      });
    ctx.state.memberships = memberships;
    const body =
      apps.length === 0
        ? emptyState("No authorized apps", "Apps appear here once you authorize them.")
        : authorizedAppsTable(apps, {
            caption: "Apps you authorized",
            authorization: ({ organization }) => html`for <bdi>${organization.name}</bdi>`,
            path: PATH,
            whose: ({ organization }) => `to ${organization.name}`,
          });
    showPage(ctx, { title: "Apps you authorized", intro: INTRO, body });
  });

  const findApp = async (ctx: Context) => {
    const user = signedInUserOf(ctx);
    const apps = await grants.listByUser(user.id);
    const app = apps.find((one) => one.id === ctx.params.grant_id);
    if (!app) throw notFound("app");
    const memberships = await organizations.listByUser(user.id);
    const membership = memberships.find(({ id }) => id === app.organizationId);
    if (!membership) throw notFound("app");
    const managesWebhooks = await mayManageWebhooks(storage, user, membership);
    return { app, apps, memberships, membership, managesWebhooks };
  };
  addForm(router, {
    path: `${PATH}/:grant_id/delete`,
    program: ["delete", `${PATH}/:grant_id`],
    async render(ctx) {
      const { app, apps, memberships, membership, managesWebhooks } = await findApp(ctx);
      ctx.state.memberships = memberships;
      const body = appRevocationForm({
        app,
        apps,
        organizationName: membership.name,
        isOwn: true,
        webhookHosts: managesWebhooks ? await webhooks.listCreatedHosts(membership.id, app) : undefined,
        path: PATH,
      });
      return { title: "Revoke access?", body };
    },
    async change(ctx) {
      const { actor } = signedInUserOf(ctx);
      const { app, managesWebhooks } = await findApp(ctx);
      const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && managesWebhooks;
      const isRevoked = await grants.revoke(app.organizationId, app.id, actor, { deletesWebhooks });
      if (!isRevoked) throw notFound("app");
      respondToChange(ctx, { to: PATH, done: deletesWebhooks ? "app-revoked-webhooks" : "app-revoked" });
    },
  });
}

/** Returns whether the organization would let this user manage its webhooks now. */
async function mayManageWebhooks(
  { secondFactorRequirement }: Options["storage"],
  { secondFactor }: SignedInUser,
  { id, role, suspension }: Membership,
): Promise<boolean> {
  if (role === "member" || suspension) return false;
  return secondFactor === "proved" || !(await secondFactorRequirement.isRequired(id));
}
