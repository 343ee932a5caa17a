import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import { respondWithTagged, tagged } from "../../resources/http/etag.ts";
import { createCursors } from "../../resources/http/pagination.ts";
import { mount, routesOf } from "../../resources/http/routing.ts";
import { createRunOnce } from "../../resources/idempotency/run-once.ts";
import { lazy } from "../../resources/lazy.ts";
import { createWorkQueue } from "../../resources/work-queue.ts";
import { currentSignIn } from "../auth/current-sign-in.ts";
import { createRegisteredClientIds } from "../clients/registered-client-id.ts";
import { compressTexts } from "../http/compression.ts";
import { isChange } from "../http/csrf.ts";
import { ACCOUNT, getMe } from "../operations/account.ts";
import { managementDocument } from "../operations/document.ts";
import type { Environment } from "../operations/operation.ts";
import { createAccess, limitChanges, pathTo } from "./access.ts";
import { type AccountParts, accountRoutes } from "./account/account.ts";
import { quickStartRoutes } from "./api-access/quick-start.ts";
import { clientRoutes } from "./api-access/routes.ts";
import { workloadIdentityRoutes } from "./api-access/workload-identity.ts";
import { connectRoutes } from "./connect/routes.ts";
import { domains } from "./domains/routes.ts";
import { analytics } from "./links/analytics.ts";
import { linkExports } from "./links/export.ts";
import { linkImport } from "./links/import.ts";
import { links } from "./links/routes.ts";
import { noticeRoutes } from "./notices.ts";
import { createOneTimeViews } from "./one-time-view.ts";
import { addReading } from "./operation-routes.ts";
import { approvedAppRoutes } from "./organization/app-policy.ts";
import { appRoutes } from "./organization/apps.ts";
import { audit } from "./organization/audit.ts";
import { memberRoutes } from "./organization/members.ts";
import { organizationRoutes, overviewRoutes } from "./organization/overview.ts";
import { planRoutes } from "./organization/plan.ts";
import { settingsRoutes } from "./organization/settings.ts";
import { loadNotices } from "./responses.ts";
import type { DashboardOptions, RouteModule } from "./route.ts";
import { createStepUp } from "./step-up.ts";
import { deliveries } from "./webhooks/deliveries.ts";
import { webhooks } from "./webhooks/routes.ts";

const ROUTE_MODULES: RouteModule[] = [
  organizationRoutes,
  overviewRoutes,
  linkImport, // before links, whose paths have an ID in its place
  linkExports,
  // Before the routes of one member, whose parameter would match the path of a setting.
  settingsRoutes,
  links,
  analytics,
  domains,
  webhooks,
  deliveries,
  memberRoutes,
  planRoutes,
  clientRoutes,
  quickStartRoutes,
  connectRoutes,
  workloadIdentityRoutes,
  appRoutes,
  approvedAppRoutes,
  audit,
  noticeRoutes,
];

/** Serves the OpenAPI document of the management API, which requires no sign-in. */
export function serveManagementDocument(environment: Pick<Environment, "settings" | "urls">): Middleware {
  const document = lazy(() => tagged(JSON.stringify(managementDocument(environment))));
  return function serveDocument(ctx) {
    ctx.set("Access-Control-Allow-Origin", "*");
    respondWithTagged(ctx, document(), "json");
  };
}

export function dashboard(
  options: DashboardOptions & AccountParts & Parameters<typeof currentSignIn>[1],
): Middleware[] {
  const router = new Router({ sensitive: true, strict: true });
  const allow = createAccess(options);
  const oneTimeView = createOneTimeViews(options.keys.signing, options.urls.base);
  const registeredClientIds =
    options.settings.DYNAMIC_REGISTRATION === "off"
      ? undefined
      : createRegisteredClientIds(options.keys.signing);
  const runOnce = createRunOnce(options.storage.idempotency, (err) =>
    options.log.error({ err }, "response not stored"),
  );
  const routeOptions = {
    ...options,
    allow,
    oneTimeView,
    registeredClientIds,
    runOnce,
    cursors: createCursors(options.keys.signing),
    enqueueExport: createWorkQueue(),
    // Back to a page: a browser would not leave the sign-in page for a download. In an organization, invitations ask.
    currentSignIn: (ctx: Context) =>
      currentSignIn(ctx, options, ctx.state.membership ? pathTo(ctx, "members") : ACCOUNT),
  };
  const stepUp = createStepUp(oneTimeView);
  addReading(router, routeOptions, getMe);
  router.get(stepUp.path, stepUp.show);
  accountRoutes(router, routeOptions);
  for (const addRoutes of ROUTE_MODULES) addRoutes(router, routeOptions);
  return [
    compressTexts,
    mount(isChange, [limitChanges(options), stepUp.keepForm]),
    loadNotices(options.storage),
    ...routesOf(router),
  ];
}
