import { type Client, errors, type KoaContextWithOIDC, Provider } from "oidc-provider";
import type { Client as StoredClient } from "../../adapters/oauth/client-row.ts";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { type Keys, nonceSecretOf } from "../keys/shared-keys.ts";
import { checkReplay, validateProof } from "./library-dpop.ts";

/**
 * Enables DPoP (RFC 9449) at the token endpoint and for pushed requests. Nonces are offered with each response, for
 * clients with a wrong clock, and never required.
 */
export function dPoP(keys: Keys) {
  return { enabled: true, nonceSecret: nonceSecretOf(keys), requireNonce: () => false, allowReplay: false };
}

/** @throws InvalidDpopProof if the organization requires DPoP and the request has no proof */
export function requireProof(
  ctx: KoaContextWithOIDC,
  organization: Pick<StoredClient["organization"], "requiresDpop"> | undefined,
): void {
  // The library has verified the proof, if there is one.
  if (!organization?.requiresDpop || ctx.get("DPoP")) return;
  throw new errors.InvalidDpopProof("the organization requires DPoP: send a proof in the DPoP header");
}

/** Returns whether a token is a bearer token of an organization that requires DPoP. */
export function lacksKey({ requiresDpop, jkt }: ActiveToken): boolean {
  return requiresDpop === true && jkt === undefined;
}

/**
 * Verifies the proof of a request for a grant that the library doesn't know, as the library does for its own. Resolves to
 * undefined without a proof.
 * @throws InvalidDpopProof, or InvalidGrant for a proof that was used before
 */
export async function readProof(
  provider: Provider,
  ctx: KoaContextWithOIDC,
): Promise<{ thumbprint: string } | undefined> {
  const proof = await validateProof(provider, ctx);
  if (proof) await checkReplay(provider, ctx, proof, ctx.oidc.client?.clientId as string);
  return proof;
}

type Redeemable = { clientId?: string; kind: string; jkt?: string; requiresDpop?: boolean };
type RedeemableModel = { find(id: string, options?: object): Promise<Redeemable | undefined> };

/**
 * Requires a proof to redeem a code or a refresh token of an organization that requires DPoP. Checked before the library
 * consumes it: forgetting the proof must not cost the whole grant.
 */
export function requireProofToRedeem({ AuthorizationCode, RefreshToken }: Provider): void {
  for (const model of [AuthorizationCode, RefreshToken] as unknown as RedeemableModel[]) {
    const find = model.find.bind(model);
    model.find = async function findForProof(id, options) {
      const found = await find(id, options);
      const { ctx } = Provider;
      const isRedeemed = ctx?.oidc.route === "token" && found?.clientId === ctx.oidc.client?.clientId;
      if (ctx && found && isRedeemed) checkRedemption(ctx, found);
      return found;
    };
  }
}

function checkRedemption(ctx: KoaContextWithOIDC, token: Redeemable): void {
  requireProof(ctx, { requiresDpop: token.requiresDpop === true });
  // RFC 9449 §5: refresh tokens of public clients are bound, too. One that was issued earlier could be used by anyone.
  const isUnbound = token.kind === "RefreshToken" && token.jkt === undefined;
  if (token.requiresDpop && isUnbound && isPublic(ctx.oidc.client)) {
    throw new errors.InvalidGrant("the refresh token is not bound to a key");
  }
}

/**
 * Leaves refresh tokens of confidential clients unbound (RFC 9449 §5): they may change their key. The library takes a
 * client that an assertion has authenticated for a public one.
 */
export function unbindConfidential(token: { jkt?: string; client?: Client }): void {
  if (!isPublic(token.client)) delete token.jkt;
}

function isPublic(client: Client | undefined): boolean {
  // Not `clientAuthMethod`, which is `none` in every request that an assertion has authenticated.
  return client?.tokenEndpointAuthMethod === "none";
}
