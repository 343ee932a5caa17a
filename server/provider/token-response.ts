import type { Context } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";

type TokenResponse = { id_token?: string; scope?: string; error?: string };

/** Lists all granted scopes, and names the error of a grant type that the client may not use. */
export function completeTokenResponse(ctx: Context): void {
  ctx.set("Pragma", "no-cache"); // RFC 6749 §5.1
  const body = ctx.body as TokenResponse | undefined;
  // RFC 6749 §5.1: `scope` lists all granted scopes; the library omits `openid` if there is a resource.
  if (body?.id_token) body.scope = ["openid", body.scope].filter(Boolean).join(" ");
  // RFC 6749 §5.2: `unauthorized_client` if the client may not use the grant type.
  if (body?.error !== "invalid_request") return;
  const { client, params } = (ctx as unknown as KoaContextWithOIDC).oidc;
  const type = params?.grant_type;
  if (client && typeof type === "string" && !client.grantTypeAllowed(type)) {
    body.error = "unauthorized_client";
  }
}
