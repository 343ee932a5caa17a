import { hkdfSync } from "node:crypto";

/** Nonces for DPoP proofs (RFC 9449 §8 and §9). They are derived from the time, so nothing is stored. */
export type DpopNonces = {
  /** Returns the nonce to offer now. */
  current(): string;
  /** Returns whether a nonce was offered in the last minutes. */
  isValid(nonce: unknown): boolean;
};

// The steps, the derivation and its parameters are those of oidc-provider. Clients keep one nonce for each origin
// (RFC 9449 §8.2), so on one origin the nonces of the token endpoint and of the resources must be the same.
const STEP_S = 60;
const ACCEPTED_STEPS = [-2, -1, 0, 1, 2];
const OFFERED_STEP = 1;

/** @param secret 32 bytes that all processes share */
export function createDpopNonces(secret: Buffer): DpopNonces {
  let derivedAt: number | undefined;
  let nonces: string[] = [];

  function derived(): string[] {
    const now = Math.floor(Date.now() / 1000 / STEP_S);
    if (now !== derivedAt) {
      nonces = ACCEPTED_STEPS.map((step) => derive(secret, now + step));
      derivedAt = now;
    }
    return nonces;
  }

  return {
    current: () => derived()[ACCEPTED_STEPS.indexOf(OFFERED_STEP)] as string,
    // A nonce is public, and signed by the client: comparing it needs no constant time.
    isValid: (nonce) => typeof nonce === "string" && derived().includes(nonce),
  };
}

function derive(secret: Buffer, step: number): string {
  const salt = Buffer.alloc(8);
  salt.writeBigUInt64BE(BigInt(step));
  return Buffer.from(hkdfSync("sha256", secret, salt, "DPoP", 32)).toString("base64url");
}
