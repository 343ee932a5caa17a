import { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { BearerCheck } from "./access/bearer.ts";
import type { PublicUrls } from "./access/resource-metadata.ts";
import type { FastPath } from "./http/fast-path.ts";
import { routesOf } from "./http/methods.ts";
import { notFound } from "./http/problem.ts";
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
  fastPaths: Pick<FastPath, "path" | "steps">[];
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
  return { middleware: [...routesOf(router), rejectUnknownPaths], fastPaths: fastPathsOf(router), document };
}

/** Returns the operations that create one thing. The response of a bulk request can be large, and only Koa compresses. */
function fastPathsOf({ stack }: Router): Pick<FastPath, "path" | "steps">[] {
  return stack
    .filter(({ methods, path }) => methods.includes("POST") && /^\/v1\/\w+$/.test(String(path)))
    .map((layer) => ({ path: String(layer.path), steps: layer.stack as unknown as Middleware[] }));
}

const rejectUnknownPaths: Middleware = async function checkPath(ctx, next) {
  if (ctx.path !== "/v1" && !ctx.path.startsWith("/v1/")) return next();
  throw notFound("URL");
};
