import { Provider } from "oidc-provider";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";

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
