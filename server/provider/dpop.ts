import { errors, type KoaContextWithOIDC } from "oidc-provider";
import type { Client as StoredClient } from "../../adapters/oauth/client-row.ts";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { type Keys, nonceSecretOf } from "../keys/shared-keys.ts";

/** RFC 9449. Nonces help clients with a wrong clock, and are never required. */
export function dPoP(keys: Keys) {
  return { enabled: true, nonceSecret: nonceSecretOf(keys), requireNonce: () => false, allowReplay: false };
}

/** Throws InvalidDpopProof if the organization or the client requires DPoP and the request has no proof. */
export function requireProof(
  ctx: KoaContextWithOIDC,
  organization: Pick<StoredClient["organization"], "requiresDpop"> | undefined,
): void {
  // oidc-provider has verified the proof, if there is one.
  if (ctx.get("DPoP")) return;
  // RFC 9449 §5.2
  const requiring = ctx.oidc.client?.dpopBoundAccessTokens ? "client" : "organization";
  if (requiring === "organization" && !organization?.requiresDpop) return;
  throw new errors.InvalidDpopProof(`the ${requiring} requires DPoP: send a proof in the DPoP header`);
}

export function lacksKey({ requiresDpop, jkt }: ActiveToken): boolean {
  return requiresDpop === true && jkt === undefined;
}

/** `requiresDpop`: an organization that the code or refresh token depends on requires DPoP. */
export type Redeemable = { clientId?: string; kind: string; jkt?: string; requiresDpop?: boolean };

/** Throws InvalidDpopProof, or InvalidGrant for an unbound refresh token of a public client. */
export function requireProofToRedeem(ctx: KoaContextWithOIDC, token: Redeemable): void {
  requireProof(ctx, { requiresDpop: token.requiresDpop === true });
  // RFC 9449 §5: refresh tokens of public clients are bound. One that was issued earlier could be used by anyone.
  const isUnbound = token.kind === "RefreshToken" && token.jkt === undefined;
  if (token.requiresDpop && isUnbound && ctx.oidc.client?.tokenEndpointAuthMethod === "none") {
    throw new errors.InvalidGrant("the refresh token is not bound to a key");
  }
}
