import { hash, hkdfSync } from "node:crypto";
import { calculateJwkThumbprint, EmbeddedJWK, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { Context } from "koa";
import { Unauthorized } from "./introspect.ts";

// How far `iat` may be from the clock of the server. The token endpoint has the same window.
const WINDOW_S = 300;
// By how much the clocks of processes may differ that share the used proofs, and those of clients for `exp` and `nbf`.
const CLOCK_SKEW_S = 30;

/** Returns true for exactly one of several concurrent calls, in any number of processes. Rejects if it can't tell. */
export type IsFirstUse = (proof: { jkt: string; jti: string; expiresAt: number }) => Promise<boolean>;

/** @param origin the public origin of the resource: the Host header is not used */
type DpopOptions = { origin: string; nonces: DpopNonces; isFirstUse: IsFirstUse };

type BoundToken = { token: string; jkt: string };

export type CheckProof = ReturnType<typeof createCheckProof>;

/** Creates the check of DPoP proofs at a resource (RFC 9449 §4.3 and §7), which also offers the next nonce. */
export function createCheckProof({ origin, nonces, isFirstUse }: DpopOptions) {
  return async function checkProof(ctx: Context, { token, jkt }: BoundToken): Promise<void> {
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
function readProof({ req }: Context): string {
  const [proof, ...others] = req.headersDistinct.dpop ?? [];
  if (proof && others.length === 0) return proof;
  throw new Unauthorized("invalid_dpop_proof", "Send exactly one DPoP header with the proof.");
}

/** RFC 9449 §4.3, steps 10 and 11. A nonce tells when a proof was created, so it helps clients with a wrong clock. */
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

/** The signature algorithms of DPoP proofs: those with short keys, because a proof is sent with every request. */
export const DPOP_ALGS = ["ES256", "Ed25519", "EdDSA"] as const;

export type Expected = {
  method: string;
  /** The public URL of the request, without its query. */
  uri: string;
  token: string;
  jkt: string;
};

export type ProofClaims = { jti: string /** Epoch seconds. */; iat: number; nonce?: unknown };

/** Verifies the signature and the claims of a proof (RFC 9449 §4.3, all but steps 10 and 11). @throws Unauthorized */
export async function verifyProof(proof: string, expected: Expected): Promise<ProofClaims> {
  const payload = await verifySignature(proof, expected.jkt);
  const { jti, iat, htm, htu, ath, nonce } = payload;
  if (typeof jti !== "string" || jti === "") throw invalidProof("jti must be a non-empty string");
  if (typeof iat !== "number") throw invalidProof("iat must be a number");
  if (htm !== expected.method) throw invalidProof(`htm must be ${expected.method}`);
  const uri = normalize(expected.uri);
  if (typeof htu !== "string" || normalize(htu) !== uri) {
    // The description is quoted in a header: quotation marks in a path are encoded in its normal form.
    throw invalidProof(`htu must be ${uri}`);
  }
  if (ath !== hash("sha256", expected.token, "base64url"))
    throw invalidProof("ath must be the SHA-256 hash of the access token");
  return { jti, iat, nonce };
}

async function verifySignature(proof: string, jkt: string): Promise<JWTPayload> {
  // Verified only with the key of the token: callers without one can't make the server verify signatures.
  const keyOfToken: JWTVerifyGetKey = async (header, input) => {
    const key = await EmbeddedJWK(header, input);
    if ((await calculateJwkThumbprint(header.jwk ?? {})) !== jkt)
      throw new Unauthorized("invalid_token", "The access token is bound to another key.");
    return key;
  };
  try {
    const options = { algorithms: [...DPOP_ALGS], typ: "dpop+jwt", clockTolerance: CLOCK_SKEW_S };
    return (await jwtVerify(proof, keyOfToken, options)).payload;
  } catch (error) {
    if (error instanceof Unauthorized) throw error;
    throw invalidProof(
      `must be a JWT of type dpop+jwt, signed with its own public jwk: ${DPOP_ALGS.join(", ")}`,
    );
  }
}

function invalidProof(rule: string): Unauthorized {
  return new Unauthorized("invalid_dpop_proof", `The DPoP proof is invalid: ${rule}.`);
}

const UNRESERVED = /[A-Za-z0-9\-._~]/;

/** Returns a URI in normal form, without query and fragment (RFC 9449 §4.3, RFC 3986 §6.2.2 and §6.2.3). */
function normalize(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (!url) return undefined;
  url.search = "";
  url.hash = "";
  return url.href.replaceAll(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return UNRESERVED.test(character) ? character : encoded.toUpperCase();
  });
}

type DpopNonces = ReturnType<typeof createDpopNonces>;

// Clients keep one nonce per origin (RFC 9449 §8.2), so the parameters are those of oidc-provider's token endpoint.
const STEP_S = 60;
const ACCEPTED_STEPS = [-2, -1, 0, 1, 2];
const OFFERED_STEP = 1;

/** Creates the nonces of DPoP proofs (RFC 9449 §8 and §9) from the time and 32 bytes that all processes share. */
export function createDpopNonces(secret: Buffer) {
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
    isValid: (nonce: unknown) => typeof nonce === "string" && derived().includes(nonce),
  };
}

function derive(secret: Buffer, step: number): string {
  const salt = Buffer.alloc(8);
  salt.writeBigUInt64BE(BigInt(step));
  return Buffer.from(hkdfSync("sha256", secret, salt, "DPoP", 32)).toString("base64url");
}
