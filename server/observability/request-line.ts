import type { Context } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";

// An allowlist: other parameters of a path are tokens, such as that of a password reset.
const HARMLESS = /^:(slug|path|plan|view|(\w+_)?id)$/;
// What a user may paste into the address bar by mistake.
const CREDENTIAL = /(lg[sar]_|whsec_)/;

/** Returns the path without its query, and the user or client. Paths that may contain a credential become the route. */
export function describeForPeople(ctx: Context, route: string): { path: string; who?: string } {
  const who = findWho(ctx);
  return { path: isHarmless(ctx.path, route) ? ctx.path : route, ...(who && { who }) };
}

function isHarmless(path: string, route: string): boolean {
  const parameters = route.split("/").filter((segment) => segment.startsWith(":"));
  return route !== "other" && parameters.every((name) => HARMLESS.test(name)) && !CREDENTIAL.test(path);
}

function findWho(ctx: Context): string | undefined {
  const { caller, user } = ctx.state;
  if (user) return user.username;
  if (caller) return caller.userId ?? caller.clientId;
  return (ctx as Partial<KoaContextWithOIDC>).oidc?.client?.clientId;
}
