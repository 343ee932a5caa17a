import { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { Gate } from "./bearer.ts";
import type { Links } from "./links/links.ts";
import { linkRoutes } from "./links/rest.ts";
import { organizationRoutes, type ShowOrganization } from "./organization.ts";
import { notFound, Problem } from "./problem.ts";

type ApiOptions = { gate: Gate; links: Links; shortUrl: string; showOrganization: ShowOrganization };

/** The REST API: every route under `/v1`, and a refusal for whatever else is asked for there. */
export function api({ gate, links, shortUrl, showOrganization }: ApiOptions): Middleware[] {
  const router = new Router({ sensitive: true, strict: true });
  linkRoutes(router, { gate, links, shortUrl });
  organizationRoutes(router, gate, showOrganization);
  return [router.routes() as unknown as Middleware, refuseMethod(router), refuseRest];
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
