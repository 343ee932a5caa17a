import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { prefersHtml } from "../../http/request-body.ts";
import type { SignedInUser } from "../../http/state.ts";
import { signedInUserOf } from "../access.ts";
import { appRevocationForm } from "../app-revocation-form.ts";
import { asksToDeleteWebhooks } from "../created-webhooks.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { accountAppsTable, type ShownAccountApp } from "./apps-page.ts";

const PATH = "/dashboard/account/apps";

type Options = {
  storage: Pick<Storage, "grants" | "organizations" | "secondFactorRequirement" | "webhooks">;
};

/** Adds the routes that list and revoke the apps that the user has authorized, for all organizations. */
export function accountAppRoutes(router: Router, { storage }: Options): void {
  const { grants, organizations } = storage;
  router.get(PATH, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const [authorized, memberships] = await Promise.all([
      grants.listByUser(id),
      organizations.listByUser(id),
    ]);
    const names = new Map(memberships.map((one) => [one.id, one.name]));
    const apps = authorized.map((app) => ({
      ...app,
      ...describeApp(app),
      organizationName: names.get(app.organizationId) ?? app.organizationId,
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = { data: apps.map(showApp) };
      return;
    }
    ctx.state.memberships = memberships;
    const intro =
      "Apps that act for you, in all of your organizations. Revoking access takes effect immediately.";
    showPage(ctx, { title: "Apps you authorized", intro }, accountAppsTable(apps));
  });

  addRevocationRoutes(router, storage);
}

function addRevocationRoutes(router: Router, storage: Options["storage"]): void {
  const { grants, organizations } = storage;

  const findApp = async (ctx: Context) => {
    const user = signedInUserOf(ctx);
    const app = (await grants.listByUser(user.id)).find((one) => one.id === ctx.params.grant_id);
    if (!app) throw notFound("app");
    const memberships = await organizations.listByUser(user.id);
    const membership = memberships.find(({ id }) => id === app.organizationId);
    if (!membership) throw notFound("app");
    const managesWebhooks = await mayManageWebhooks(storage, user, membership);
    return { app, memberships, membership, managesWebhooks };
  };

  const showForm: Show = async (ctx, error) => {
    const { app, memberships, membership, managesWebhooks } = await findApp(ctx);
    ctx.state.memberships = memberships;
    const body = appRevocationForm({
      app: { ...app, ...describeApp(app), scopes: withoutImplied(allowedByRole(app.scopes, app.role)) },
      organizationName: membership.name,
      isOwn: true,
      webhookHosts: managesWebhooks ? await storage.webhooks.listCreatedHosts(membership.id, app) : undefined,
      path: PATH,
      csrf: signedInUserOf(ctx).csrf,
    });
    showPage(ctx, { title: "Revoke access?", error }, body);
  };
  router.get(`${PATH}/:grant_id/delete`, (ctx) => showForm(ctx));

  const revoke = async (ctx: Context) => {
    const { actor } = signedInUserOf(ctx);
    const { app, managesWebhooks } = await findApp(ctx);
    const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && managesWebhooks;
    if (!(await grants.revoke(app.organizationId, app.id, actor, { deletesWebhooks }))) throw notFound("app");
    respondToChange(ctx, { to: PATH, done: deletesWebhooks ? "app-revoked-webhooks" : "app-revoked" });
  };
  router.delete(`${PATH}/:grant_id`, revoke);
  router.post(`${PATH}/:grant_id/delete`, redisplayForm(showForm), revoke);
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

function showApp(app: ShownAccountApp) {
  const { id, name, publisher, clientId, organizationId, organizationName, scopes, lastUsedAt } = app;
  return {
    id,
    app: name,
    client_id: clientId,
    published_by: publisher,
    organization: { id: organizationId, name: organizationName },
    scopes,
    granted_at: new Date(app.grantedAt).toISOString(),
    expires_at: new Date(app.expiresAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}
