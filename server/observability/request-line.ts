import type { Context } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";

// An allowlist: other parameters of a path are tokens, such as that of a password reset.
const HARMLESS = /^:(slug|path|plan|view|(\w+_)?id)$/;
// What a user may paste into the address bar by mistake.
const CREDENTIAL = /(lg[sar]_|whsec_)/;

/** Returns the path without its query, and the user or client. Paths that may contain a credential become the route. */
export function describeForPeople(ctx: Context, route: string): { path: string; who?: string } {
  const { client_id, user_id } = identifiersOf(ctx);
  const who = ctx.state.user?.username ?? user_id ?? client_id;
  return { path: isHarmless(ctx.path, route) ? ctx.path : route, ...(who && { who }) };
}

function isHarmless(path: string, route: string): boolean {
  const parameters = route.split("/").filter((segment) => segment.startsWith(":"));
  return route !== "other" && parameters.every((name) => HARMLESS.test(name)) && !CREDENTIAL.test(path);
}

type Identifiers = {
  address: string;
  client_id: string | undefined;
  user_id: string | undefined;
  organization_id: string | undefined;
};

/** Returns what relates a request to others and to the audit log, as far as it is known. */
export function identifiersOf(ctx: Context): Identifiers {
  const { caller, user, membership } = ctx.state;
  const { client, account } = (ctx as Partial<KoaContextWithOIDC>).oidc ?? {};
  return {
    address: ctx.ip,
    client_id: caller?.clientId ?? client?.clientId,
    user_id: caller?.userId ?? user?.id ?? account?.accountId,
    organization_id: caller?.organizationId ?? membership?.id,
  };
}
