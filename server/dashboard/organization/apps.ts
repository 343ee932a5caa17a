import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { ShownApp } from "../../clients/client-view.ts";
import { findApps, listApps, readApps, revokeApp } from "../../operations/apps.ts";
import { badge, breakable, linkButton } from "../../ui/controls.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { html } from "../../ui/html.ts";
import { emptyState, pathWith } from "../../ui/table.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { appRevocationForm, authorizedAppsTable, ownClientList } from "../authorized-apps.ts";
import { addOperationPage, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

/** `isAllowed`: whether the organization lets its members connect the app. If not, its tokens are rejected. */
type OrganizationApp = ShownApp & { isAllowed: boolean };

const INTRO = "Apps that members have authorized. Revoking access takes effect immediately.";

export const appRoutes: RouteModule = (router, options) => {
  const { storage, appPolicyCheck } = options;
  const { clients, trustRules, webhooks } = storage;

  async function ownClient(membership: Membership) {
    const client = await clients.findByOrganization(membership.id);
    return client && ownClientList(membership, client, await trustRules.list(membership.id));
  }

  addReading(router, options, listApps, async (ctx) => {
    const membership = membershipOf(ctx);
    const { apps } = await readApps({ storage, appPolicyCheck, organization: membership });
    const body = html`${appsTable(ctx, apps)}${isManager(membership) && (await ownClient(membership))}`;
    showPage(ctx, { title: "Authorized apps", intro: INTRO, section: "apps", body });
  });

  addOperationPage(router, options, revokeApp, {
    path: `${ORGANIZATION}/apps/:grant_id/delete`,
    section: "apps",
    to: (ctx) => pathTo(ctx, "apps"),
    async render(ctx) {
      const organization = membershipOf(ctx);
      const member = { user: signedInUserOf(ctx), role: organization.role };
      const { app, apps } = await findApps({ storage, organization, member }, ctx.params.grant_id);
      const body = appRevocationForm({
        app,
        apps,
        organizationName: organization.name,
        isOwn: app.userId === member.user.id,
        others: apps.filter(({ clientId }) => clientId === app.clientId).length - 1,
        webhookHosts: isManager(organization)
          ? await webhooks.listCreatedHosts(organization.id, app)
          : undefined,
        path: pathTo(ctx, "apps"),
      });
      return { title: "Revoke access?", body };
    },
  });
};

function appsTable(ctx: Context, apps: OrganizationApp[]) {
  const membership = membershipOf(ctx);
  const user = signedInUserOf(ctx);
  if (apps.length === 0)
    return emptyState(
      "No authorized apps",
      "Apps appear here once a member authorizes them. You can revoke access at any time.",
      linkButton(pathTo(ctx, "connect"), "Connect an AI client"),
    );
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
