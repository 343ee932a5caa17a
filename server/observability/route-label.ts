import type { Context } from "koa";

// An allowlist, because each label stays in memory and callers could request any number of paths.
const FIXED_ROUTES = new Set([
  "/",
  "/oauth/authorize",
  "/oauth/token",
  "/oauth/revoke",
  "/oauth/introspect",
  "/oauth/par",
  "/oauth/register",
  "/oauth/userinfo",
  "/oauth/jwks",
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/v1",
  "/.well-known/oauth-protected-resource/mcp",
  "/.well-known/oauth-protected-resource/mcp/",
  "/v1/openapi.json",
  "/mcp",
  "/mcp/",
  "/docs",
  "/favicon.ico",
  "/robots.txt",
  "/.well-known/security.txt",
]);

/** The route of short links. */
export const SLUG_ROUTE = "/:slug";

/** Returns the route pattern, never the path itself, which may contain a secret. */
export function routeOf(ctx: Context): string {
  if (typeof ctx._matchedRoute === "string") return ctx._matchedRoute;
  if (FIXED_ROUTES.has(ctx.path)) return ctx.path;
  return /^\/[^/]+$/.test(ctx.path) ? SLUG_ROUTE : "other";
}
