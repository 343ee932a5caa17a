import { createHmac, createPublicKey, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { providerSettings, type TestProvider } from "./identity-provider.ts";

type Json = Record<string, unknown>;
type Parts = { header: Json; payload: Json };

/** Changes an ID token in transit. Undefined: the token is removed. */
export type Forgery = (idToken: string, provider: TestProvider) => unknown;

const foreign = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;

const now = () => Math.floor(Date.now() / 1000);

function encode(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

/** Decodes the header and the payload of an ID token. */
export function readToken(token: string): Parts {
  const [header = "", payload = ""] = token.split(".");
  const decode = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  return { header: decode(header), payload: decode(payload) };
}

function signRs({ header, payload }: Parts, key: KeyObject): string {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${createSign("sha256").update(text).sign(key, "base64url")}`;
}

function signHs({ header, payload }: Parts, secret: string | Buffer): string {
  const text = `${encode({ ...header, alg: "HS256" })}.${encode(payload)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

/** Changes the claims of a token and signs it with the provider's key. `undefined` removes a claim. */
export function withClaims(
  token: string,
  { privateKey }: TestProvider,
  claims: (payload: Json) => Json,
): string {
  const { header, payload } = readToken(token);
  return signRs({ header, payload: { ...payload, ...claims(payload) } }, privateKey);
}

const claims =
  (change: (payload: Json) => Json): Forgery =>
  (token, provider) =>
    withClaims(token, provider, change);

/** Tokens with a valid signature that were not issued for this sign-in. */
export const WRONG_CLAIMS: Record<string, Forgery> = {
  "no nonce": claims(() => ({ nonce: undefined })),
  "a nonce of another sign-in": claims(() => ({ nonce: "another" })),
  "an empty nonce": claims(() => ({ nonce: "" })),
  "several nonces": claims(({ nonce }) => ({ nonce: [nonce, "another"] })),
  "another audience": claims(() => ({ aud: "another-client" })),
  "no audience": claims(() => ({ aud: undefined })),
  "several audiences without the client": claims(() => ({ aud: ["one", "two"] })),
  "several audiences and no authorized party": claims(({ aud }) => ({ aud: [aud, "two"], azp: undefined })),
  "another authorized party": claims(() => ({ azp: "another-client" })),
  "several audiences and another authorized party": claims(({ aud }) => ({ aud: [aud, "two"], azp: "two" })),
  "another issuer": claims(() => ({ iss: "https://evil.example" })),
  "the issuer with a slash": claims(({ iss }) => ({ iss: `${iss}/` })),
  "no issuer": claims(() => ({ iss: undefined })),
  "an expiry in the past": claims(() => ({ exp: now() - 3600 })),
  "no expiry": claims(() => ({ exp: undefined })),
  "an expiry that is no number": claims(() => ({ exp: "never" })),
  "no time of issue": claims(() => ({ iat: undefined })),
  "no subject": claims(() => ({ sub: undefined })),
  "an empty subject": claims(() => ({ sub: "" })),
  "a subject that is no text": claims(() => ({ sub: { admin: true } })),
  "a subject that is too long": claims(() => ({ sub: "s".repeat(256) })),
  "a subject with a NUL": claims(() => ({ sub: "user\u0000" })),
  "a subject outside of ASCII": claims(() => ({ sub: "sömebody" })),
  "a validity that begins later": claims(() => ({ nbf: now() + 3600 })),
  "a time of sign-in that is no number": claims(() => ({ auth_time: "yesterday" })),
};

/** Tokens with another signature or none. */
export const WRONG_SIGNATURES: Record<string, Forgery> = {
  "no signature and alg none": (token) => `${encode({ alg: "none" })}.${token.split(".")[1]}.`,
  "alg none in another spelling": (token) => `${encode({ alg: "nOnE" })}.${token.split(".")[1]}.`,
  "alg none and the signature of another alg": (token) =>
    `${encode({ alg: "none" })}.${token.split(".").slice(1).join(".")}`,
  "an HMAC with the public key as JSON": (token, { publicKey }) =>
    signHs(readToken(token), JSON.stringify(publicKey)),
  "an HMAC with the public key as PEM": (token, { privateKey }) =>
    signHs(readToken(token), pemOf(privateKey)),
  "an HMAC with the modulus of the public key": (token, { publicKey }) =>
    signHs(readToken(token), Buffer.from(String(publicKey.n), "base64url")),
  "an HMAC with the client's secret": (token) =>
    signHs(readToken(token), providerSettings("").IDP_CLIENT_SECRET as string),
  "an HMAC with nothing": (token) => signHs(readToken(token), ""),
  "a signature by another key under the same id": (token) => signRs(readToken(token), foreign),
  "a signature by a key of its own header": (token) => {
    const { header, payload } = readToken(token);
    const jwk = foreign.export({ format: "jwk" });
    return signRs({ header: { ...header, jwk, kid: undefined }, payload }, foreign);
  },
  "a signature by a key that its header leads to": (token) => {
    const { header, payload } = readToken(token);
    return signRs({ header: { ...header, jku: "https://evil.example/jwks", kid: "evil" }, payload }, foreign);
  },
  "an unknown key id": (token) => {
    const { header, payload } = readToken(token);
    return signRs({ header: { ...header, kid: "unknown" }, payload }, foreign);
  },
  "a header that must be understood and is not": (token, { privateKey }) => {
    const { header, payload } = readToken(token);
    return signRs({ header: { ...header, crit: ["evil"], evil: true }, payload }, privateKey);
  },
  "a changed payload": (token) => {
    const [header, , signature] = token.split(".");
    return `${header}.${encode({ ...readToken(token).payload, sub: "another-user" })}.${signature}`;
  },
  "its signature cut off": (token) => token.slice(0, token.lastIndexOf(".") + 1),
  "a payload that is no JSON": (token) => `${token.split(".")[0]}.e30x.${token.split(".")[2]}`,
  "nothing at all": () => undefined,
  "no text": () => ({ sub: "user" }),
  "no JWT": () => "not.a.token",
};

function pemOf(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString();
}
