import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { signedInUserOf } from "../access.ts";
import { respondToChange, showPage } from "../responses.ts";
import { accountAppsTable, type ShownAccountApp } from "./apps-page.ts";

const PATH = "/dashboard/account/apps";

type Options = { storage: Pick<Storage, "grants" | "organizations"> };

/** Adds the routes that list and revoke the apps that the user has authorized, for all organizations. */
export function accountAppRoutes(router: Router, { storage: { grants, organizations } }: Options): void {
  router.get(PATH, async (ctx) => {
    const { id, csrf } = signedInUserOf(ctx);
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
    showPage(ctx, { title: "Apps you authorized", intro }, accountAppsTable(apps, csrf));
  });

  const revoke = async (ctx: Context) => {
    const { id, actor } = signedInUserOf(ctx);
    const app = (await grants.listByUser(id)).find((one) => one.id === ctx.params.grant_id);
    if (!app || !(await grants.revoke(app.organizationId, app.id, actor))) throw notFound("app");
    respondToChange(ctx, { to: PATH, done: "app-revoked" });
  };
  router.delete(`${PATH}/:grant_id`, revoke);
  router.post(`${PATH}/:grant_id/delete`, revoke);
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
