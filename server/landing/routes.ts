import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { isAt, mount } from "../../resources/http/mount.ts";
import { Problem, toProblemBody } from "../../resources/http/problem.ts";
import { HOME } from "../auth/return-to.ts";
import { prefersHtml } from "../http/request-body.ts";
import { landingPage } from "./page.ts";

/** How visitors sign in and register. */
export type Entry = { isSignedIn(ctx: Context): Promise<boolean>; mayRegister: boolean };

/**
 * Serves `/` on `BASE_URL`: redirects signed-in users to the dashboard, shows everyone else a landing page, and returns
 * the service's URLs as JSON to programs. A separate `SHORT_URL` host keeps its 404: visitors of short links have no
 * account there and needn't learn where the dashboard is.
 * @param entry undefined on a server that serves only the resources and has no sign-in
 */
export function landing(urls: PublicUrls, entry?: Entry): Middleware {
  const links = linksOf(urls);
  const page = landingPage({
    url: `${urls.base}/`,
    apiUrl: urls.api,
    mcpUrl: urls.mcp,
    // A server without sign-in has only this metadata, which names the authorization server.
    discoveryPath: entry
      ? "/.well-known/oauth-authorization-server"
      : "/.well-known/oauth-protected-resource",
    entry,
  });
  return mount(isAt(`${urls.base}/`), [
    async function serveLanding(ctx) {
      if (ctx.method !== "GET" && ctx.method !== "HEAD")
        return methodNotAllowed(ctx, links.documentation_url);
      ctx.set("Cache-Control", "no-store"); // depends on the session
      if (!prefersHtml(ctx)) {
        ctx.body = links;
      } else if (await entry?.isSignedIn(ctx)) {
        ctx.status = 303;
        ctx.redirect(HOME);
      } else {
        ctx.type = "html";
        ctx.body = page;
      }
    },
  ]);
}

function linksOf({ base, api, mcp }: PublicUrls) {
  return {
    name: "linkgate",
    documentation_url: `${base}/docs`,
    openapi_url: `${api}/openapi.json`,
    api_url: api,
    mcp_url: mcp,
    authorization_server: base,
    authorization_server_metadata_url: `${base}/.well-known/oauth-authorization-server`,
    protected_resource_metadata_url: `${base}/.well-known/oauth-protected-resource`,
  };
}

function methodNotAllowed(ctx: Context, docsUrl: string): void {
  const headers = { Allow: "GET, HEAD" };
  const problem = new Problem(405, "method_not_allowed", "Use GET or HEAD.", { headers });
  ctx.status = problem.status;
  ctx.set(problem.headers);
  ctx.body = toProblemBody(problem, docsUrl, ctx.state.requestId);
  ctx.type = "application/problem+json";
}
