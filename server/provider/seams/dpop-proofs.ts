import type { KoaContextWithOIDC, Provider } from "oidc-provider";

/**
 * Seam: the proof of a request for a grant of ours is verified by oidc-provider.
 * No option: oidc-provider passes these functions to its own grants only.
 * Upstream would have to offer: the helpers of grants as an argument of the handlers in `registerGrantType`.
 */

type Proof = { thumbprint: string; jti: string; iat: number };
type Module = {
  default(provider: Provider, ctx: KoaContextWithOIDC): Promise<Proof | undefined>;
  checkDpopReplay(provider: Provider, ctx: KoaContextWithOIDC, proof: Proof, clientId: string): Promise<void>;
};

const path: string = "oidc-provider/lib/helpers/validate_dpop.js";
const { default: validateProof, checkDpopReplay } = (await import(path)) as Module;

/**
 * Verifies the proof of a token request. Resolves to undefined without a proof.
 * @throws InvalidDpopProof, or InvalidGrant for a proof that was used before
 */
export async function readProof(
  provider: Provider,
  ctx: KoaContextWithOIDC,
): Promise<{ thumbprint: string } | undefined> {
  const proof = await validateProof(provider, ctx);
  if (proof) await checkDpopReplay(provider, ctx, proof, ctx.oidc.client?.clientId as string);
  return proof;
}
