import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";

// Long enough to read the page and find a security key.
const LIFETIME_MS = 5 * 60 * 1000;
const NONCE_BYTES = 16;
const TIME_BYTES = 8;
const MAC_BYTES = 32;

/**
 * Challenges for authenticators (WebAuthn §13.4.3). Each names its purpose and its expiry and is authenticated, so the
 * server stores a challenge only once it is used.
 */
export type Challenges = {
  /** @param purpose what the challenge is for, including the browser or the session that it is bound to */
  create(purpose: string): Uint8Array<ArrayBuffer>;
  /**
   * Redeems a challenge, in base64url. Returns false if it expired, is for another purpose or was used before. Of any number
   * of calls, on any process, exactly one resolves to true.
   */
  redeem(challenge: string, purpose: string): Promise<boolean>;
};

/** @param secret shared by all processes */
export function createChallenges(secret: string, replays: Pick<ReplayStore, "useOnce">): Challenges {
  const sign = (head: Uint8Array, purpose: string) =>
    createHmac("sha256", secret).update(`passkey\n${purpose}\n`).update(head).digest();

  return {
    create(purpose) {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeBigInt64BE(BigInt(Date.now() + LIFETIME_MS));
      const head = Buffer.concat([randomBytes(NONCE_BYTES), time]);
      return new Uint8Array(Buffer.concat([head, sign(head, purpose)]));
    },

    async redeem(challenge, purpose) {
      const bytes = Buffer.from(challenge, "base64url");
      if (bytes.length !== NONCE_BYTES + TIME_BYTES + MAC_BYTES) return false;
      const head = bytes.subarray(0, -MAC_BYTES);
      if (!timingSafeEqual(bytes.subarray(-MAC_BYTES), sign(head, purpose))) return false;
      const expiresAt = Number(head.readBigInt64BE(NONCE_BYTES));
      if (expiresAt <= Date.now()) return false;
      return replays.useOnce({ issuer: "passkey", jti: head.toString("base64url"), expiresAt });
    },
  };
}
