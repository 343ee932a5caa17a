import { type KoaContextWithOIDC, Provider } from "oidc-provider";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";

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

// How far in the future the `iat` of a proof may be, and the skew between processes. Such a proof is accepted for longer
// than oidc-provider remembers it.
const FUTURE_S = 330;

/**
 * Seam: one INSERT decides which of several uses of a DPoP proof is the first.
 * No option: oidc-provider finds a row and then stores one, so that concurrent uses are all the first; an adapter that
 * throws would choose the error, which depends on the endpoint. A request that asks twice about its proof gets one answer.
 * Upstream would have to offer: an adapter method that stores a row unless it exists.
 */
export function detectReplaysAtOnce({ ReplayDetection }: Provider, replays: ReplayStore): void {
  const answers = new WeakMap<object, { proof: string; isFirst: Promise<boolean> }>();
  Object.assign(ReplayDetection, {
    unique(issuer: string, jti: string, exp: number) {
      const { ctx } = Provider;
      const proof = JSON.stringify([issuer, jti]);
      const earlier = ctx && answers.get(ctx);
      if (earlier?.proof === proof) return earlier.isFirst;
      const isFirst = replays.useOnce({ issuer, jti, expiresAt: (exp + FUTURE_S) * 1000 });
      if (ctx) answers.set(ctx, { proof, isFirst });
      return isFirst;
    },
  });
}
