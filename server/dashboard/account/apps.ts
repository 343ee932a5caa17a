import type { Router } from "@koa/router";
import { ACCOUNT } from "../../operations/account.ts";
import { findOwnApp, findOwnApps, listOwnApps, revokeOwnApp } from "../../operations/account-apps.ts";
import { html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { signedInUserOf } from "../access.ts";
import { appRevocationForm, authorizedAppsTable } from "../authorized-apps.ts";
import { addOperationPage, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteOptions } from "../route.ts";

const PATH = `${ACCOUNT}/apps`;
const INTRO =
  "Apps that act for you, in all of your organizations. Revoking access takes effect immediately.";

export function accountAppRoutes(router: Router, options: RouteOptions): void {
  const { storage } = options;

  addReading(router, options, listOwnApps, async (ctx) => {
    const { apps } = await findOwnApps(storage, signedInUserOf(ctx));
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

  addOperationPage(router, options, revokeOwnApp, {
    path: `${PATH}/:grant_id/delete`,
    to: () => PATH,
    async render(ctx) {
      const found = await findOwnApp(storage, signedInUserOf(ctx), ctx.params.grant_id);
      const { app, apps, membership, managesWebhooks } = found;
      const body = appRevocationForm({
        app,
        apps,
        organizationName: membership.name,
        isOwn: true,
        webhookHosts: managesWebhooks
          ? await storage.webhooks.listCreatedHosts(membership.id, app)
          : undefined,
        path: PATH,
      });
      return { title: "Revoke access?", body };
    },
  });
}
