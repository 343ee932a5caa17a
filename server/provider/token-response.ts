import type { Context } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";

type TokenResponse = { error?: string; scope?: string };

/**
 * Completes a token response: sets its headers, lists `offline_access` if it was granted, and names the error of a grant
 * type that the client may not use.
 */
export function completeTokenResponse(ctx: Context): void {
  ctx.set("Pragma", "no-cache"); // RFC 6749 §5.1
  const body = ctx.body as TokenResponse | undefined;
  const { oidc } = ctx as unknown as KoaContextWithOIDC;
  if (body?.scope && isOffline(oidc)) body.scope += " offline_access";
  // RFC 6749 §5.2: `unauthorized_client` if the client may not use the grant type.
  if (body?.error !== "invalid_request") return;
  const { client, params } = oidc;
  const type = params?.grant_type;
  if (client && typeof type === "string" && !client.grantTypeAllowed(type)) {
    body.error = "unauthorized_client";
  }
}

/** RFC 6749 §5.1: the scope of the response is the granted one. The library lists only that of the access token. */
function isOffline({ entities, params, requestParamScopes }: KoaContextWithOIDC["oidc"]): boolean {
  const isNarrowed = params?.grant_type === "refresh_token" && Boolean(params.scope); // RFC 6749 §6
  if (isNarrowed && !requestParamScopes.has("offline_access")) return false;
  return entities.RefreshToken?.scope?.split(" ").includes("offline_access") ?? false;
}
