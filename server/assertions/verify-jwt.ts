import { errors, type JWTHeaderParameters, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { sha256 } from "../../adapters/crypto/ids.ts";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";

/** RFC 7518 and RFC 8037. No issuer uses RSASSA-PKCS1-v1_5 over SHA-384 and SHA-512. */
export const SIGNING_ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"] as const;

/** In seconds. */
export const CLOCK_SKEW_S = 30;

export type JwtRules = {
  issuer: string;
  /** `aud` must be, or contain, one of these. */
  audiences: readonly string[];
  isSingleAudience?: boolean;
  keys: JWTVerifyGetKey;
  type?: string;
  /** The maximum time since `iat`, in seconds. */
  maxAgeS: number;
  /** In addition to `iss`, `aud`, `exp` and `iat`. */
  requiredClaims?: string[];
};

export type VerifiedJwt = {
  claims: JWTPayload & { exp: number; iat: number };
  header: JWTHeaderParameters;
  /** Until when it would be accepted again, in epoch milliseconds: `exp` may be any number. */
  acceptedUntil: number;
};

/** A JWT is invalid. The message says why, without any value of the token. */
export class InvalidJwt extends Error {
  override readonly name = "InvalidJwt";
  /** Whether the signature is valid: the sender has a token of the issuer. */
  readonly isSigned: boolean;
  readonly isOtherKey: boolean;

  constructor(message: string, { isSigned = false, isOtherKey = false } = {}) {
    super(message);
    this.isSigned = isSigned;
    this.isOtherKey = isOtherKey;
  }
}

/** RFC 7523 §3, RFC 8725, without regard to whether it was used before. Throws InvalidJwt. */
export async function verifyJwt(token: string, rules: JwtRules): Promise<VerifiedJwt> {
  const { issuer, audiences, isSingleAudience, keys, type, maxAgeS, requiredClaims = [] } = rules;
  try {
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      algorithms: [...SIGNING_ALGORITHMS],
      issuer,
      audience: [...audiences],
      clockTolerance: CLOCK_SKEW_S,
      maxTokenAge: maxAgeS,
      currentDate: new Date(Date.now()), // the clock that everything else uses
      requiredClaims: ["exp", "iat", ...requiredClaims],
      ...(type && { typ: type }),
    });
    if (isSingleAudience && [payload.aud].flat().length !== 1)
      throw new InvalidJwt("aud must be a single value");
    // RFC 7519 §4.1.2, which the library leaves to its callers. MariaDB takes the number 0 for most texts.
    if (payload.sub !== undefined && typeof payload.sub !== "string")
      throw new InvalidJwt("sub must be a string", { isSigned: true });
    const claims = payload as VerifiedJwt["claims"];
    const lastSecond = Math.ceil(Math.min(claims.exp, claims.iat + maxAgeS)) + CLOCK_SKEW_S;
    return { claims, header: protectedHeader, acceptedUntil: (lastSecond + 1) * 1000 };
  } catch (error) {
    if (error instanceof errors.JOSEError) throw toInvalidJwt(error);
    // Published keys may be malformed or too short.
    const isUnusableKey = error instanceof TypeError || error instanceof DOMException;
    throw isUnusableKey ? new InvalidJwt("the key of the issuer can't be used") : error;
  }
}

/** Throws InvalidJwt on any process if the JWT was used before; without `jti`, its signed content identifies it. */
export async function useJwtOnce(
  replays: ReplayStore,
  token: string,
  { claims, acceptedUntil }: VerifiedJwt,
): Promise<void> {
  const { iss = "", jti } = claims;
  const isFirst = await replays.useOnce({
    issuer: iss,
    jti: typeof jti === "string" && jti !== "" ? `jti:${jti}` : `sha256:${hashOfContent(token)}`,
    expiresAt: acceptedUntil,
  });
  if (!isFirst) throw new InvalidJwt("the JWT was already used");
}

function hashOfContent(token: string): string {
  return sha256(token.slice(0, token.lastIndexOf(".")));
}

function toInvalidJwt(error: errors.JOSEError): InvalidJwt {
  const isSigned = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed;
  const isOtherKey =
    error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey;
  return new InvalidJwt(explain(error), { isSigned, isOtherKey });
}

function explain(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired)
    return error.claim === "exp" ? "the JWT has expired" : "the JWT is too old";
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error;
    if (reason === "missing") return `${claim} is missing`;
    if (claim === "typ") return "the JWT has the wrong typ";
    if (claim === "nbf") return "the JWT is not valid yet";
    if (claim === "iat") return "the JWT was issued in the future";
    return `${claim} has an unexpected value`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return "the signing algorithm is not allowed";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the signature is invalid";
  if (error instanceof errors.JWKSNoMatchingKey) return "no key of the issuer matches";
  if (error instanceof errors.JWKSMultipleMatchingKeys) return "several keys match: kid is missing";
  return "the JWT is malformed";
}
