import { hash } from "node:crypto";
import { calculateJwkThumbprint, EmbeddedJWK, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { Unauthorized } from "./unauthorized.ts";

/** The signature algorithms of DPoP proofs: those with short keys, because a proof is sent with every request. */
export const DPOP_ALGS = ["ES256", "Ed25519", "EdDSA"] as const;

// Of `exp` and `nbf`, which a proof doesn't need.
const CLOCK_SKEW_S = 30;

/** What a proof must be about. */
export type Expected = {
  method: string;
  /** The public URL of the request, without its query. */
  uri: string;
  /** The access token, and the thumbprint of the key that it is bound to. */
  token: string;
  jkt: string;
};

/** The verified claims that decide whether a proof is recent and unused. */
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
  if (ath !== hash("sha256", expected.token, "base64url")) {
    throw invalidProof("ath must be the SHA-256 hash of the access token");
  }
  return { jti, iat, nonce };
}

async function verifySignature(proof: string, jkt: string): Promise<JWTPayload> {
  // Verified only with the key of the token: callers without one can't make the server verify signatures.
  const keyOfToken: JWTVerifyGetKey = async (header, input) => {
    const key = await EmbeddedJWK(header, input);
    if ((await calculateJwkThumbprint(header.jwk ?? {})) !== jkt) {
      throw new Unauthorized("invalid_token", "The access token is bound to another key.");
    }
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
