/** Why a token, or the proof sent with it, was rejected with a 401. The message is for developers. */
export class Unauthorized extends Error {
  /** The error code of the challenge: RFC 6750 §3.1, RFC 9449 §7.1 and §9. */
  readonly code: "invalid_token" | "invalid_dpop_proof" | "use_dpop_nonce";
  constructor(code: Unauthorized["code"], message: string) {
    super(message);
    this.name = "Unauthorized";
    this.code = code;
  }
}
