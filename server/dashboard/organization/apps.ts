import type { Context } from "koa";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { describeApproval, showApproval } from "../../clients/approval-view.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { html } from "../../ui/html.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { changeAppPolicy, choicesOn } from "./app-policy.ts";
import { appPolicyPanel } from "./app-policy-panel.ts";
import { approvedAppsSection } from "./approved-apps-page.ts";
import { appsTable, type ShownApp } from "./apps-page.ts";
import { enterpriseAuthorizationPanel } from "./enterprise-authorization.ts";

const PATH = `${ORGANIZATION}/apps`;

/** Adds the routes that list authorized apps, revoke their access, and choose which ones members may connect. */
export const appRoutes: RouteModule = (router, options) => {
  const { storage, settings, clientPolicy, allow } = options;
  const choices = choicesOn(settings);
  const canRegister = settings.DYNAMIC_REGISTRATION !== "off";
  const { grants, appPolicies, approvedApps, enterpriseAuthorization } = storage;

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const [authorized, setting, listed, isEnterpriseManaged] = await Promise.all([
      grants.listByOrganization(membership.id),
      appPolicies.find(membership.id),
      approvedApps.list(membership.id),
      enterpriseAuthorization.isEnabled(membership.id),
    ]);
    if (!setting) throw notFound("organization");
    const approved = listed.map(describeApproval);
    const approvedIds = new Set(approved.map(({ clientId }) => clientId));
    const apps = authorized.map((app) => ({
      ...app,
      ...describeApp(app),
      isAllowed: clientPolicy(
        app.clientId,
        { ...setting, isApproved: approvedIds.has(app.clientId) },
        app.role,
      ),
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = {
        allowed_clients: setting.allowedClients,
        member_apps: setting.memberApps,
        approved_apps: approved.map(showApproval),
        enterprise_authorization: isEnterpriseManaged,
        data: apps.map(showApp),
      };
      return;
    }
    const intro = "Apps that members have authorized. Revoking access takes effect immediately.";
    const { csrf } = signedInUserOf(ctx);
    const policy = appPolicyPanel({ membership, setting, choices, canRegister, csrf });
    const enterprise =
      settings.IDP_NAME && membership.role === "owner"
        ? enterpriseAuthorizationPanel({
            organizationId: membership.id,
            isEnabled: isEnterpriseManaged,
            idpName: settings.IDP_NAME,
            csrf,
          })
        : html``;
    const approvals = approvedAppsSection({ membership, memberApps: setting.memberApps, approved, csrf });
    const body = html`${policy}${enterprise}${approvals}${appsTable({ membership, user: signedInUserOf(ctx), apps })}`;
    showPage(ctx, { title: "Authorized apps", intro, section: "apps", error }, body);
  };
  router.get(PATH, allow(), (ctx) => show(ctx));

  const change = changeAppPolicy(options);
  router.put(PATH, allow(...MANAGERS), change);
  router.post(PATH, allow(...MANAGERS), redisplayForm(show), change);

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

function showApp(app: ShownApp) {
  const { id, clientId, userId, username, scopes, grantedAt, expiresAt, lastUsedAt } = app;
  return {
    id,
    app: app.name,
    client_id: clientId,
    published_by: app.publisher,
    is_allowed: app.isAllowed,
    user: { id: userId, username },
    scopes,
    granted_at: new Date(grantedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}
