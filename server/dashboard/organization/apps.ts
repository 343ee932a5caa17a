import type { Context } from "koa";
import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { claimedNameOf } from "../../provider/registered-client-id.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { respondToChange, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { appsPage } from "./apps-page.ts";

const PATH = `${ORGANIZATION}/apps`;

/** Adds the routes that list authorized apps and revoke their access. */
export const appRoutes: RouteModule = (router, { storage, allow }) => {
  const { grants } = storage;

  router.get(PATH, allow(), async (ctx) => {
    const membership = membershipOf(ctx);
    const authorized = (await grants.listByOrganization(membership.id)).map((app) => ({
      ...app,
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = { data: authorized.map(showApp) };
      return;
    }
    const intro = "Apps that members have authorized. Revoking access takes effect immediately.";
    const body = appsPage({ membership, user: signedInUserOf(ctx), apps: authorized, nameOf: appName });
    showPage(ctx, { title: "Authorized apps", intro, section: "apps" }, body);
  });

  const revoke = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const user = signedInUserOf(ctx);
    const grantId = ctx.params.grant_id as string;
    const app = (await grants.listByOrganization(id)).find((one) => one.id === grantId);
    if (!app) throw notFound("app");
    if (role === "member" && app.userId !== user.id) {
      const detail = "Only owners, admins and the user who authorized the app can revoke its access.";
      throw new Problem(403, "role_required", detail);
    }
    if (!(await grants.revoke(id, grantId, user.actor))) throw notFound("app");
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "app-revoked" });
  };
  router.delete(`${PATH}/:grant_id`, allow(), revoke);
  router.post(`${PATH}/:grant_id/delete`, allow(), revoke);
};

/** Returns the name of the app's organization, or the host of its client metadata document. */
function appName({ appName: name, clientId }: AuthorizedApp): string {
  return name ?? claimedNameOf(clientId) ?? URL.parse(clientId)?.host ?? clientId;
}

function showApp(app: AuthorizedApp) {
  const { id, clientId, userId, username, scopes, grantedAt, expiresAt, lastUsedAt } = app;
  return {
    id,
    app: appName(app),
    client_id: clientId,
    user: { id: userId, username },
    scopes,
    granted_at: new Date(grantedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}
