import { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { BearerCheck } from "./access/bearer.ts";
import type { PublicUrls } from "./access/resource-metadata.ts";
import { type FindExactRoute, indexExactRoutes, serveRoutes } from "./http/exact-routes.ts";
import { notFound, Problem } from "./http/problem.ts";
import { idempotent } from "./idempotency/middleware.ts";
import type { RunOnce } from "./idempotency/run-once.ts";
import { lazy } from "./lazy.ts";
import { linkRoutes } from "./links/routes.ts";
import type { LinkService } from "./links/service.ts";
import { buildDocument, type OpenApiDocument } from "./openapi/document.ts";
import { createDeclare } from "./openapi/operation.ts";
import { serveDocument } from "./openapi/serve.ts";
import { organizationRoutes, type ShowOrganization } from "./organization/routes.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "./webhooks/event-schemas.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import type { WebhookService } from "./webhooks/service.ts";

type RestApiOptions = {
  bearerCheck: BearerCheck;
  links: LinkService;
  webhooks: WebhookService;
  showOrganization: ShowOrganization;
  urls: PublicUrls;
  runOnce: RunOnce;
  version: string;
};

/** Creates the REST API: the operations under `/v1`, errors for all other requests there, and the OpenAPI document. */
export function createRestApi(options: RestApiOptions): {
  middleware: Middleware[];
  findRoute: FindExactRoute;
  document: () => OpenApiDocument;
} {
  const { bearerCheck, links, webhooks, showOrganization, urls, runOnce, version } = options;
  const router = new Router({ sensitive: true, strict: true });
  const { declare, operations } = createDeclare(router, { bearerCheck, idempotent: idempotent(runOnce) });
  linkRoutes(declare, { links, shortUrl: urls.short });
  webhookRoutes(declare, { webhooks, shortUrl: urls.short });
  organizationRoutes(declare, showOrganization);
  const document = lazy(() => buildDocument(operations, { urls, version, events: WEBHOOK_EVENT_SCHEMAS }));
  serveDocument(declare, document);
  const findRoute = indexExactRoutes(router);
  return {
    middleware: [serveRoutes(router, findRoute), rejectOtherMethods(router), rejectUnknownPaths],
    findRoute,
    document,
  };
}

/** Answers OPTIONS, and other unsupported methods with 405 and `Allow` (RFC 9110 §15.5.6). */
function rejectOtherMethods(router: Router): Middleware {
  return async function checkMethod(ctx, next) {
    const matched = router.match(ctx.path, ctx.method);
    const methods = [...new Set(matched.path.flatMap((layer) => layer.methods))];
    if (methods.length === 0) return next();
    const allow = [...methods, "OPTIONS"].join(", ");
    if (ctx.method === "OPTIONS") {
      ctx.status = 204;
      ctx.set("Allow", allow);
      return;
    }
    throw new Problem(405, "method_not_allowed", `Allowed methods: ${allow}.`, { headers: { Allow: allow } });
  };
}

const rejectUnknownPaths: Middleware = async function checkPath(ctx, next) {
  if (ctx.path !== "/v1" && !ctx.path.startsWith("/v1/")) return next();
  throw notFound("URL");
};
