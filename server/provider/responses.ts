import type { Context, Middleware } from "koa";
import type { Settings } from "../config.ts";
import { completeDiscovery } from "./discovery.ts";
import { completeIntrospection } from "./introspection.ts";
import { completeKeySet } from "./key-set.ts";
import { completeRevocation } from "./revocation.ts";
import { completeTokenResponse } from "./token-response.ts";

/** Completes the library's responses where it has no option for it. */
export function completeResponses(settings: Settings): Middleware {
  const steps = new Map<string, (ctx: Context) => void>([
    ["/.well-known/openid-configuration", completeDiscovery(settings)],
    ["/.well-known/oauth-authorization-server", completeDiscovery(settings)],
    ["/oauth/jwks", completeKeySet],
    ["/oauth/token", completeTokenResponse],
    ["/oauth/revoke", completeRevocation],
    ["/oauth/introspect", completeIntrospection],
  ]);
  return function completeResponse(ctx, next) {
    const complete = steps.get(ctx.path);
    return complete ? next().then(() => complete(ctx)) : next();
  };
}
