import { createPublicKey, type KeyObject } from "node:crypto";
import { calculateJwkThumbprint, importJWK, type JWK } from "jose";
import { parseJson } from "../../resources/http/json-body.ts";
import { SIGNING_ALGORITHMS } from "../assertions/verify-jwt.ts";

/** A JWK with only its public members and its `alg`, if it names one. */
export type PublicKey = { jwk: Record<string, unknown>; thumbprint: string };

// RFC 7518 §3.3: at least 2048 bits. A larger modulus than the other bound only costs time.
const RSA_BITS = { min: 2048, max: 8192 };
const CURVES: Record<string, string> = { prime256v1: "P-256", secp384r1: "P-384" };
const FORMS = "must be a public key: a JWK, or PEM starting with -----BEGIN PUBLIC KEY-----";
const PRIVATE =
  "must be the public key, not the private one. If the private key left your system, replace it";
const MAX_LENGTH = 16_384;

/** The message is a predicate, such as `must be …`. */
export class InvalidKey extends Error {
  override readonly name = "InvalidKey";
}

/** Reads PEM (RFC 7468) or a JWK (RFC 7517). Throws InvalidKey. */
export async function parsePublicKey(text: string): Promise<PublicKey> {
  const trimmed = text.trim();
  if (trimmed === "") throw new InvalidKey("is required");
  if (trimmed.length > MAX_LENGTH)
    throw new InvalidKey(`must be at most ${MAX_LENGTH.toLocaleString("en")} characters`);
  const { key, alg } = trimmed.startsWith("{") ? readJwk(trimmed) : { key: readPem(trimmed) };
  validateType(key);
  const jwk = key.export({ format: "jwk" });
  // RFC 8725 §3.1: a key that names its algorithm is used with no other.
  if (alg !== undefined) await validateAlgorithm(jwk as JWK, alg);
  return {
    jwk: { ...jwk, ...(alg !== undefined && { alg }) },
    thumbprint: await calculateJwkThumbprint(jwk as JWK),
  };
}

function readPem(text: string): KeyObject {
  // Node would derive the public key from a private one.
  if (text.includes("PRIVATE KEY")) throw new InvalidKey(PRIVATE);
  if (!/^-----BEGIN (RSA )?(PUBLIC KEY|CERTIFICATE)-----/.test(text)) throw new InvalidKey(FORMS);
  try {
    return createPublicKey(text);
  } catch {
    throw new InvalidKey("must be a complete public key: this PEM can't be read");
  }
}

function readJwk(text: string): { key: KeyObject; alg?: unknown } {
  let jwk: Record<string, unknown>;
  try {
    jwk = parseJson(Buffer.from(text)) as Record<string, unknown>;
  } catch {
    throw new InvalidKey("must be valid JSON if it starts with {");
  }
  if ("keys" in jwk) throw new InvalidKey("must be a single key, not a JWK set");
  if ("d" in jwk) throw new InvalidKey(PRIVATE);
  if (jwk.kty === "oct") throw new InvalidKey("must be a public key, not a shared secret");
  if (jwk.use !== undefined && jwk.use !== "sig") throw new InvalidKey("must be a key for signatures");
  try {
    return { key: createPublicKey({ key: jwk, format: "jwk" }), alg: jwk.alg };
  } catch {
    throw new InvalidKey(FORMS);
  }
}

async function validateAlgorithm(jwk: JWK, alg: unknown): Promise<void> {
  const isAccepted = SIGNING_ALGORITHMS.some((accepted) => accepted === alg);
  const isUsable = isAccepted && (await importJWK(jwk, String(alg)).then(Boolean, () => false));
  if (!isUsable)
    throw new InvalidKey(`must have an alg that fits it, one of ${SIGNING_ALGORITHMS.join(", ")}`);
}

/** Throws InvalidKey for a key that no accepted algorithm uses. */
function validateType({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): void {
  const { modulusLength = 0, namedCurve = "" } = details;
  if (type === "rsa" && modulusLength >= RSA_BITS.min && modulusLength <= RSA_BITS.max) return;
  if (type === "rsa")
    throw new InvalidKey(`must have ${RSA_BITS.min} to ${RSA_BITS.max} bits if it is an RSA key`);
  if ((type === "ec" && CURVES[namedCurve]) || type === "ed25519") return;
  throw new InvalidKey(
    `must be an RSA key, an EC key on ${Object.values(CURVES).join(" or ")}, or an Ed25519 key`,
  );
}
