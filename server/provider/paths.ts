import type { Context, Middleware } from "koa";
import { Problem } from "../../resources/http/problem.ts";
import { requireMethod } from "../../resources/http/routing.ts";
import {
  ENDPOINT_LIST,
  ENDPOINTS,
  endpointsByPath,
  METADATA_PATHS,
  RESUME_PATH,
} from "../oauth-endpoints.ts";
import type { Settings } from "../settings/config.ts";

const PAGES = ENDPOINT_LIST.filter(({ isPage }) => isPage).map(({ path }) => path);

/**
 * The last step before oidc-provider. Its router ignores case and trailing slashes, so other spellings of a path would get
 * responses that no other step limits or completes; and it has routes that this service doesn't use.
 */
export const onlyKnownPaths: Middleware = async function leaveKnownPaths({ path }, next) {
  const isKnown = endpointsByPath.has(path) || RESUME_PATH.test(path) || METADATA_PATHS.includes(path);
  if (isKnown) await next();
};

/** Responses may not be stored, unless a later step says so (RFC 6749 §5.1). */
export function requireOauthPath(settings: Settings): Middleware {
  const served = new Map([...endpointsByPath].filter(([, { isOn }]) => isOn?.(settings) ?? true));
  return function requireExactPath(ctx, next) {
    const endpoint = served.get(ctx.path);
    if (endpoint?.origins !== "every") ctx.set("Cache-Control", "no-store");
    const methods = endpoint?.methods ?? (RESUME_PATH.test(ctx.path) ? ["GET", "HEAD"] : undefined);
    if (!methods) {
      throw new Problem(404, "not_found", "There is no endpoint at this path.");
    }
    const isPreflight = ctx.method === "OPTIONS" && ctx.get("origin") !== "" && endpoint?.origins;
    return isPreflight ? next() : requireMethod(ctx, methods, next);
  };
}

export function isOauthPath({ path }: Context): boolean {
  return /^\/oauth(\/|$)/i.test(path);
}

/** The request, its pages, and the return from them. */
export function isAuthorizationPath({ path }: Context): boolean {
  return path === ENDPOINTS.authorization.path || RESUME_PATH.test(path) || path.startsWith("/interaction/");
}

/** The endpoints, the keys and the metadata documents. */
export function isClientPath(ctx: Context): boolean {
  const isPage = PAGES.some((page) => ctx.path === page || ctx.path.startsWith(`${page}/`));
  return (isOauthPath(ctx) || ctx.path.startsWith("/.well-known/")) && !isPage;
}
