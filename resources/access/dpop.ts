import type { ApiContext } from "../http/api-context.ts";
import type { DpopNonces } from "./dpop-nonces.ts";
import { type ProofClaims, verifyProof } from "./dpop-proof.ts";
import { Unauthorized } from "./unauthorized.ts";

// How far `iat` may be from the clock of the server. The token endpoint has the same window.
const WINDOW_S = 300;
// Of the processes that share the used proofs.
const CLOCK_SKEW_S = 30;

/**
 * Records that the proof with this `jti` and key was used; returns false if it had been. Of concurrent calls in any
 * number of processes, exactly one returns true. Must reject if it can't tell.
 * @param proof `expiresAt` is when the record may be deleted, in epoch milliseconds
 */
export type IsFirstUse = (proof: { jkt: string; jti: string; expiresAt: number }) => Promise<boolean>;

type DpopOptions = {
  /** The public origin of the resource. The Host header is not used. */
  origin: string;
  nonces: DpopNonces;
  isFirstUse: IsFirstUse;
};

/** A token that is bound to the key with this thumbprint (RFC 7638). */
type BoundToken = { token: string; jkt: string };

/** Checks that a request has a proof for its token, and offers the next nonce. @throws Unauthorized */
export type CheckProof = (ctx: ApiContext, bound: BoundToken) => Promise<void>;

/** Creates the check of DPoP proofs at a resource (RFC 9449 §4.3 and §7). */
export function createCheckProof({ origin, nonces, isFirstUse }: DpopOptions): CheckProof {
  return async function checkProof(ctx, { token, jkt }) {
    const expected = { method: ctx.method, uri: origin + ctx.path, token, jkt };
    const claims = await verifyProof(readProof(ctx), expected);
    const current = nonces.current();
    // RFC 9449 §8.2: with any response, before the client's nonce expires.
    if (claims.nonce !== current) ctx.set("DPoP-Nonce", current);
    checkAge(claims, nonces);
    if (await isFirstUse({ jkt, jti: claims.jti, expiresAt: expiryOf(claims) })) return;
    throw new Unauthorized(
      "invalid_dpop_proof",
      "The DPoP proof was already used. Sign a new one for each request.",
    );
  };
}

/** RFC 9449 §4.3, step 1 */
function readProof({ req }: ApiContext): string {
  const [proof, ...others] = req.headersDistinct.dpop ?? [];
  if (proof && others.length === 0) return proof;
  throw new Unauthorized("invalid_dpop_proof", "Send exactly one DPoP header with the proof.");
}

/**
 * RFC 9449 §4.3, steps 10 and 11. A nonce tells when a proof was created, so clients with a wrong clock are asked to use
 * one.
 */
function checkAge({ iat, nonce }: ProofClaims, nonces: DpopNonces): void {
  if (nonce === undefined) {
    if (Math.abs(Date.now() / 1000 - iat) <= WINDOW_S) return;
    throw new Unauthorized(
      "use_dpop_nonce",
      `iat must be within ${WINDOW_S} seconds of the server's time. Retry with the nonce of the DPoP-Nonce header.`,
    );
  }
  if (nonces.isValid(nonce)) return;
  throw new Unauthorized(
    "use_dpop_nonce",
    "The nonce has expired. Retry with the one of the DPoP-Nonce header.",
  );
}

/** Returns when a proof is no longer accepted, on any process. A nonce is accepted for at most five minutes. */
function expiryOf({ iat, nonce }: ProofClaims): number {
  const created = nonce === undefined ? iat : Date.now() / 1000;
  return Math.ceil((created + WINDOW_S + CLOCK_SKEW_S) * 1000);
}
