import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, type JWK } from "jose";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import type { Client as StoredClient } from "../../adapters/oauth/client-row.ts";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { type Keys, nonceSecretOf } from "../keys/shared-keys.ts";

/** How long oidc-provider accepts a proof without a nonce. */
const PROOF_LIFETIME_S = 300;

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

/**
 * `requiresDpop`: an organization that the code or refresh token depends on requires DPoP. `dpopJkt`: the thumbprint of
 * the key that the authorization request bound its code to (RFC 9449 §10).
 */
export type Redeemable = {
  clientId?: string;
  kind: string;
  jkt?: string;
  dpopJkt?: string;
  requiresDpop?: boolean;
};

/** Throws InvalidDpopProof, or InvalidGrant for an unbound refresh token of a public client. */
export function requireProofToRedeem(ctx: KoaContextWithOIDC, token: Redeemable): void {
  requireProof(ctx, { requiresDpop: token.requiresDpop === true });
  // RFC 9449 §5: refresh tokens of public clients are bound. One that was issued earlier could be used by anyone.
  const isUnbound = token.kind === "RefreshToken" && token.jkt === undefined;
  if (token.requiresDpop && isUnbound && ctx.oidc.client?.tokenEndpointAuthMethod === "none")
    throw new errors.InvalidGrant("the refresh token is not bound to a key");
}

type ReplayDetection = { unique(clientId: string, jti: string, exp: number): Promise<boolean> };

/** Checks what oidc-provider checks only after a code is used up. It has verified the proof before. Throws InvalidGrant. */
export async function checkProofOfCode(ctx: KoaContextWithOIDC, { dpopJkt }: Redeemable): Promise<void> {
  const proof = ctx.get("DPoP");
  if (!proof && dpopJkt) throw new errors.InvalidGrant("missing DPoP proof JWT");
  if (!proof) return;
  const { jwk } = decodeProtectedHeader(proof);
  if (dpopJkt && dpopJkt !== (await calculateJwkThumbprint(jwk as JWK)))
    throw new errors.InvalidGrant("DPoP proof key thumbprint does not match dpop_jkt");
  const { client, provider } = ctx.oidc;
  const { ReplayDetection } = provider as unknown as { ReplayDetection: ReplayDetection };
  const expiresAt = Math.floor(Date.now() / 1000) + PROOF_LIFETIME_S;
  if (!(await ReplayDetection.unique(client?.clientId as string, decodeJwt(proof).jti as string, expiresAt)))
    throw new errors.InvalidGrant("DPoP proof JWT Replay detected");
}
