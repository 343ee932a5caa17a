import type { Context, Middleware } from "koa";
import { area, at } from "../resources/area.ts";
import type { Addresses } from "../resources/metadata.ts";
import { Problem, toBody } from "../resources/problem.ts";
import { prefersHtml } from "./people/input.ts";
import { HOME } from "./people/return-to.ts";
import { landingPage } from "./views/landing.ts";

/** How visitors get in. */
export type Entry = { isSignedIn(ctx: Context): Promise<boolean>; mayRegister: boolean };

/**
 * Serves `/` on `BASE_URL`: the dashboard for users who are signed in, a landing page for everyone else, and the
 * addresses as JSON for programs. A separate `SHORT_URL` host keeps its 404: people who follow short links have no
 * account there, and need not learn where the dashboard is.
 * @param entry absent on a server that serves only the resources and has no sign-in
 */
export function landing(addresses: Addresses, entry?: Entry): Middleware {
  const links = describe(addresses);
  const page = landingPage({
    apiUrl: addresses.api,
    mcpUrl: addresses.mcp,
    // A server of the resources only has no other metadata of its own; this one names the authorization server.
    discoveryPath: entry
      ? "/.well-known/oauth-authorization-server"
      : "/.well-known/oauth-protected-resource",
    entry,
  });
  return area(at(`${addresses.base}/`), [
    async function serveLanding(ctx) {
      if (ctx.method !== "GET" && ctx.method !== "HEAD") return refuseMethod(ctx, links.documentation_url);
      ctx.set("Cache-Control", "no-store"); // it depends on the session
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

function describe({ base, api, mcp }: Addresses) {
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

function refuseMethod(ctx: Context, docsUrl: string): void {
  const headers = { Allow: "GET, HEAD" };
  const problem = new Problem(405, "method_not_allowed", "Use GET or HEAD.", { headers });
  ctx.status = problem.status;
  ctx.set(problem.headers);
  ctx.body = toBody(problem, docsUrl, ctx.state.requestId);
  ctx.type = "application/problem+json";
}
