import type { Context } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";

type TokenResponse = { error?: string };

/** Sets the headers of a token response, and names the error of a grant type that the client may not use. */
export function completeTokenResponse(ctx: Context): void {
  ctx.set("Pragma", "no-cache"); // RFC 6749 §5.1
  const body = ctx.body as TokenResponse | undefined;
  // RFC 6749 §5.2: `unauthorized_client` if the client may not use the grant type.
  if (body?.error !== "invalid_request") return;
  const { client, params } = (ctx as unknown as KoaContextWithOIDC).oidc;
  const type = params?.grant_type;
  if (client && typeof type === "string" && !client.grantTypeAllowed(type)) {
    body.error = "unauthorized_client";
  }
}
