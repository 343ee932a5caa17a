import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import {
  describeApproval,
  describeAuthorizedApp,
  type ShownApp,
  showApp,
  showApproval,
} from "../../clients/client-view.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { badge, breakable, linkButton } from "../../ui/controls.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { html } from "../../ui/html.ts";
import { emptyState, pathWith } from "../../ui/table.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { appRevocationForm, authorizedAppsTable } from "../authorized-apps.ts";
import { asksToDeleteWebhooks } from "../created-webhooks.ts";
import { ownClientList } from "../own-client.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import { addForm, ORGANIZATION, type RouteModule } from "../route.ts";

/** `isAllowed`: whether the organization lets its members connect the app. If not, its tokens are rejected. */
type OrganizationApp = ShownApp & { isAllowed: boolean };

const PATH = `${ORGANIZATION}/apps`;
const INTRO = "Apps that members have authorized. Revoking access takes effect immediately.";

export const appRoutes: RouteModule = (router, options) => {
  const { storage, appPolicyCheck, allow } = options;
  const { grants, appPolicies, approvedApps, enterpriseAuthorization, clients, trustRules } = storage;

  async function ownClient(membership: Membership) {
    const client = await clients.findByOrganization(membership.id);
    return client && ownClientList(membership, client, await trustRules.list(membership.id));
  }

  router.get(PATH, allow(), async (ctx) => {
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
    const apps = authorized.map((app) => {
      const policy = { ...setting, isApproved: approvedIds.has(app.clientId) };
      return { ...describeAuthorizedApp(app), isAllowed: appPolicyCheck(app.clientId, policy, app.role) };
    });
    if (!prefersHtml(ctx))
      return sendJson(ctx, {
        allowed_clients: setting.allowedClients,
        member_apps: setting.memberApps,
        approved_apps: approved.map(showApproval),
        enterprise_authorization: isEnterpriseManaged,
        data: apps.map((app) => ({
          ...showApp(app),
          is_allowed: app.isAllowed,
          user: { id: app.userId, username: app.username },
        })),
      });
    const body = html`${appsTable(ctx, apps)}${isManager(membership) && (await ownClient(membership))}`;
    showPage(ctx, { title: "Authorized apps", intro: INTRO, section: "apps", body });
  });
  addRevocationRoutes(router, options);
};

const addRevocationRoutes: RouteModule = (router, { storage: { grants, webhooks }, allow }) => {
  const findApps = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const apps = await grants.listByOrganization(id);
    const app = apps.find((one) => one.id === ctx.params.grant_id);
    if (!app) throw notFound("app");
    if (role === "member" && app.userId !== signedInUserOf(ctx).id) {
      const detail = "Only owners, admins and the user who authorized the app can revoke its access.";
      throw new Problem(403, "role_required", detail);
    }
    return { app, apps };
  };

  addForm(router, {
    path: `${PATH}/:grant_id/delete`,
    program: ["delete", `${PATH}/:grant_id`],
    access: allow(),
    section: "apps",
    async render(ctx) {
      const membership = membershipOf(ctx);
      const { app, apps } = await findApps(ctx);
      const body = appRevocationForm({
        app,
        apps,
        organizationName: membership.name,
        isOwn: app.userId === signedInUserOf(ctx).id,
        others: apps.filter(({ clientId }) => clientId === app.clientId).length - 1,
        webhookHosts: isManager(membership) ? await webhooks.listCreatedHosts(membership.id, app) : undefined,
        path: pathTo(ctx, "apps"),
      });
      return { title: "Revoke access?", body };
    },
    async change(ctx) {
      const membership = membershipOf(ctx);
      const { actor } = signedInUserOf(ctx);
      const { app } = await findApps(ctx);
      const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && isManager(membership);
      if (!(await grants.revoke(membership.id, app.id, actor, { deletesWebhooks }))) throw notFound("app");
      const done = deletesWebhooks ? "app-revoked-webhooks" : "app-revoked";
      respondToChange(ctx, { to: pathTo(ctx, "apps"), done });
    },
  });
};

function appsTable(ctx: Context, apps: OrganizationApp[]) {
  const membership = membershipOf(ctx);
  const user = signedInUserOf(ctx);
  if (apps.length === 0) {
    return emptyState(
      "No authorized apps",
      "Apps appear here once a member authorizes them. You can revoke access at any time.",
      linkButton(pathTo(ctx, "connect"), "Connect an AI client"),
    );
  }
  return authorizedAppsTable(apps, {
    caption: "Authorized apps",
    badge: ({ isAllowed }) => (isAllowed ? html`` : html` ${badge("not allowed", "warn")}`),
    authorization: ({ username }) => html`by <bdi>${breakable(username)}</bdi>`,
    path: pathTo(ctx, "apps"),
    activity: isManager(membership)
      ? ({ clientId }) => pathWith(pathTo(ctx, "audit"), { client_id: clientId })
      : undefined,
    whose: ({ userId, username }) =>
      isManager(membership) || userId === user.id ? `for ${username}` : undefined,
  });
}
