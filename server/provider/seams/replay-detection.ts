import type { Provider } from "oidc-provider";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";

// How far in the future the `iat` of a proof may be, and the skew between processes. Such a proof is accepted for longer
// than oidc-provider remembers it.
const FUTURE_S = 330;

/**
 * Seam: one INSERT decides which of several uses of a DPoP proof is the first.
 * No option: oidc-provider finds a row and then stores one, so that concurrent uses are all the first; an adapter that
 * throws would choose the error, which depends on the endpoint.
 * Upstream would have to offer: an adapter method that stores a row unless it exists.
 */
export function detectReplaysAtOnce({ ReplayDetection }: Provider, replays: ReplayStore): void {
  Object.assign(ReplayDetection, {
    unique: (issuer: string, jti: string, exp: number) =>
      replays.useOnce({ issuer, jti, expiresAt: (exp + FUTURE_S) * 1000 }),
  });
}
