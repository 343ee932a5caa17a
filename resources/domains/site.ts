import type { Context, Middleware } from "koa";
import { notFound, Problem } from "../http/problem.ts";
import { mount, requireRead } from "../http/routing.ts";
import type { DomainService } from "./service.ts";
import type { Domain, ServedDomain } from "./types.ts";

declare module "koa" {
  interface DefaultState {
    /** The domain whose host the request is for; undefined on the service's own hosts. */
    domain: ServedDomain | undefined;
  }
}

const ROBOTS = "User-agent: *\nAllow: /\n";

// The addresses are those that Apple and Google look up.
const APP_LINKS = new Map<string, keyof Domain["appLinks"]>([
  ["/.well-known/apple-app-site-association", "apple_app_site_association"],
  ["/.well-known/assetlinks.json", "assetlinks"],
]);

/** Where visitors go who ask for a host itself, or for what isn't there. */
export type SiteRedirects = Pick<ServedDomain, "rootRedirectUrl" | "notFoundUrl">;

type LinkSteps = {
  isPreview(ctx: Context): boolean;
  preview: Middleware[];
  isShortLink(ctx: Context): boolean;
  follow: Middleware[];
};

/** What the host of a domain serves: its links and their previews, its root, `robots.txt` and the documents of apps. */
export function domainSteps(
  { findAppLinks }: Pick<DomainService, "findAppLinks">,
  { isPreview, preview, isShortLink, follow }: LinkSteps,
): Middleware[] {
  const isFile = ({ path }: Context) => path === "/robots.txt" || APP_LINKS.has(path);
  return [
    redirectUnknown(domainOf),
    mount(({ path }) => path === "/", [redirectRoot(domainOf)]),
    mount(isFile, [
      requireRead,
      async function serveFile(ctx, next) {
        const name = APP_LINKS.get(ctx.path);
        const body = name ? (await findAppLinks(domainOf(ctx).id))?.[name] : ROBOTS;
        if (!body) return next();
        ctx.set("Cache-Control", "public, max-age=300");
        ctx.body = body;
      },
    ]),
    mount(isPreview, preview),
    mount(isShortLink, follow),
    () => {
      throw notFound("link");
    },
  ];
}

function domainOf({ state }: Context): ServedDomain {
  return state.domain as ServedDomain;
}

/** Sends visitors who find nothing to where the owner of the host wants them. */
export function redirectUnknown(redirectsOf: (ctx: Context) => SiteRedirects): Middleware {
  return async function redirectNotFound(ctx, next) {
    try {
      await next();
    } catch (error) {
      const { notFoundUrl } = redirectsOf(ctx);
      const isMissing = error instanceof Problem && error.status === 404;
      if (!isMissing || notFoundUrl === null || !["GET", "HEAD"].includes(ctx.method)) throw error;
      // What was not found either.
      if (isRequestFor(ctx, notFoundUrl)) throw error;
      sendTo(ctx, notFoundUrl);
    }
  };
}

export function redirectRoot(redirectsOf: (ctx: Context) => SiteRedirects): Middleware {
  return function redirectHost(ctx, next) {
    const { rootRedirectUrl } = redirectsOf(ctx);
    return rootRedirectUrl === null || isRequestFor(ctx, rootRedirectUrl)
      ? next()
      : requireRead(ctx, async () => sendTo(ctx, rootRedirectUrl));
  };
}

/** Returns whether a redirect to a URL would be a loop. */
function isRequestFor(ctx: Context, url: string): boolean {
  const { host, pathname } = new URL(url);
  return ctx.path === pathname && ctx.get("host") === host;
}

function sendTo(ctx: Context, url: string): void {
  ctx.set("Cache-Control", "private, no-store");
  ctx.status = 302;
  // Not `ctx.redirect`, whose body has the URL as text.
  ctx.set("Location", new URL(url).href);
  ctx.body = "";
  ctx.remove("Content-Type");
}
