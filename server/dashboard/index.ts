import { Router } from "@koa/router";
import type { Middleware } from "koa";
import { respondWithTagged, tagged } from "../../resources/http/etag.ts";
import { routesOf } from "../../resources/http/routing.ts";
import { createRunOnce, idempotent } from "../../resources/idempotency/run-once.ts";
import { lazy } from "../../resources/lazy.ts";
import { createRegisteredClientIds } from "../clients/registered-client-id.ts";
import { managementDocument } from "../operations/document.ts";
import type { Environment } from "../operations/operation.ts";
import { createAccess } from "./access.ts";
import { type AccountOptions, accountRoutes } from "./account/routes.ts";
import { quickStartRoutes } from "./api-access/quick-start.ts";
import { clientRoutes } from "./api-access/routes.ts";
import { workloadIdentityRoutes } from "./api-access/workload-identity.ts";
import { connectRoutes } from "./connect/routes.ts";
import { analytics } from "./links/analytics-page.ts";
import { linkExports } from "./links/export.ts";
import { linkImport } from "./links/import.ts";
import { links } from "./links/routes.ts";
import { showMembership } from "./membership-view.ts";
import { loadNotices, noticeRoutes } from "./notices/routes.ts";
import { createOneTimeViews } from "./one-time-view.ts";
import { approvedAppRoutes } from "./organization/approved-apps.ts";
import { appRoutes } from "./organization/apps.ts";
import { audit } from "./organization/audit.ts";
import { memberRoutes } from "./organization/members.ts";
import { planRoutes } from "./organization/plan.ts";
import { organizationRoutes } from "./organization/routes.ts";
import { settingsRoutes } from "./organization/settings.ts";
import type { DashboardOptions, RouteModule } from "./route.ts";
import { deliveries } from "./webhooks/deliveries.ts";
import { webhooks } from "./webhooks/routes.ts";

const ROUTE_MODULES: RouteModule[] = [
  organizationRoutes,
  linkImport, // before links, whose paths have an ID in its place
  linkExports,
  // Before the routes of one member, whose parameter would match the path of a setting.
  settingsRoutes,
  links,
  analytics,
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

/** Serves the OpenAPI document of the management API, for which nobody has to sign in. */
export function serveManagementDocument(environment: Pick<Environment, "settings" | "urls">): Middleware {
  const document = lazy(() => tagged(JSON.stringify(managementDocument(environment))));
  return function serveDocument(ctx) {
    ctx.set("Access-Control-Allow-Origin", "*");
    respondWithTagged(ctx, document(), "json");
  };
}

export function dashboard(options: DashboardOptions & AccountOptions): Middleware[] {
  const router = new Router({ sensitive: true, strict: true });
  const { organizations, secondFactorRequirement } = options.storage;
  const allow = createAccess({
    organizations,
    secondFactorRequirement,
    webhooks: options.services.webhooks,
    supportContact: options.settings.SUPPORT_CONTACT,
  });
  const oneTimeView = createOneTimeViews(options.keys.signing, options.urls.base);
  accountRoutes(router, { ...options, oneTimeView });
  const registeredClientIds =
    options.settings.DYNAMIC_REGISTRATION === "off"
      ? undefined
      : createRegisteredClientIds(options.keys.signing);
  const once = idempotent(
    createRunOnce(options.storage.idempotency, (err) => options.log.error({ err }, "response not stored")),
  );
  for (const addRoutes of ROUTE_MODULES)
    addRoutes(router, { ...options, allow, oneTimeView, registeredClientIds, idempotent: once });
  router.get("/dashboard/me", async (ctx) => {
    const { id, username } = ctx.state.user;
    const memberships = await options.storage.organizations.listByUser(id);
    ctx.body = { user: { id, username }, organizations: memberships.map(showMembership) };
  });
  return [loadNotices(options.storage), ...routesOf(router)];
}
