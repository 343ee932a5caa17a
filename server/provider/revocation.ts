import type { Context } from "koa";
import type { Client, Configuration, KoaContextWithOIDC } from "oidc-provider";
import { isUnsupportedToken } from "./unsupported-token.ts";

/** Returns whether a client may revoke a token: only its own. Another client's counts as unknown (RFC 7009 §2.2). */
export function mayRevoke(
  _ctx: KoaContextWithOIDC,
  client: Client,
  token: { clientId?: string | undefined },
): boolean {
  return token.clientId === client.clientId;
}

/** Revokes the whole grant along with a user's token (RFC 7009 §2.1). */
export const revokeGrantPolicy: Configuration["revokeGrantPolicy"] = () => true;

/**
 * Responds 200 to a token in an unsupported format: it is unknown, which is no error (RFC 7009 §2.2). Clients that parse
 * every response as JSON get an empty object.
 */
export function completeRevocation(ctx: Context): void {
  ctx.set("Cache-Control", "no-store");
  if (isUnsupportedToken(ctx)) ctx.status = 200;
  if (ctx.status === 200) ctx.body = {};
}
