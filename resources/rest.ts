import { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { Gate } from "./bearer.ts";
import type { Once } from "./idempotency.ts";
import { idempotent } from "./idempotency-key.ts";
import type { Links } from "./links/links.ts";
import { linkRoutes } from "./links/rest.ts";
import type { Addresses } from "./metadata.ts";
import { documentOf, type OpenApiDocument } from "./openapi/document.ts";
import { declareOn } from "./openapi/operation.ts";
import { serveDocument } from "./openapi/serve.ts";
import { organizationRoutes, type ShowOrganization } from "./organization.ts";
import { notFound, Problem } from "./problem.ts";
import { TOLD } from "./webhooks/payloads.ts";
import { webhookRoutes } from "./webhooks/rest.ts";
import type { Webhooks } from "./webhooks/webhooks.ts";

type ApiOptions = {
  gate: Gate;
  links: Links;
  webhooks: Webhooks;
  showOrganization: ShowOrganization;
  addresses: Addresses;
  once: Once;
  version: string;
};

/** The REST API: every operation under `/v1`, a refusal for whatever else is asked for there, and its description. */
export function api({ gate, links, webhooks, showOrganization, addresses, once, version }: ApiOptions): {
  middleware: Middleware[];
  document: OpenApiDocument;
} {
  const router = new Router({ sensitive: true, strict: true });
  const { declare, operations } = declareOn(router, { gate, idempotent: idempotent(once) });
  linkRoutes(declare, { links, shortUrl: addresses.short });
  webhookRoutes(declare, { webhooks, shortUrl: addresses.short });
  organizationRoutes(declare, showOrganization);
  const complete = serveDocument(declare);
  const document = documentOf(operations, { addresses, version, told: TOLD });
  complete(document);
  return {
    middleware: [router.routes() as unknown as Middleware, refuseMethod(router), refuseRest],
    document,
  };
}

/** 405 with `Allow` where the address exists (RFC 9110 §15.5.6). */
function refuseMethod(router: Router): Middleware {
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
    throw new Problem(405, "method_not_allowed", `Use one of ${allow}.`, { headers: { Allow: allow } });
  };
}

const refuseRest: Middleware = async function refuseUnknown(ctx, next) {
  if (ctx.path !== "/v1" && !ctx.path.startsWith("/v1/")) return next();
  throw notFound("address");
};
