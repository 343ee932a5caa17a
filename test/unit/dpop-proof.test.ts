import test from "ava";
import { base64url, exportJWK, generateSecret, SignJWT } from "jose";
import type { Context } from "koa";
import { createCheckProof, createDpopNonces } from "../../resources/access/dpop.ts";
import { Unauthorized } from "../../resources/access/introspect.ts";
import { athOf, createDpopKey, type DpopKey, type Proof, signProof } from "../harness/clients/dpop.ts";
import { now } from "../harness/clock.ts";

const ORIGIN = "http://localhost:8080";
const PATH = "/v1/links";
const [key, otherKey] = await Promise.all([createDpopKey(), createDpopKey()]);
const token = `lga_${"t".repeat(43)}`;
const privateJwk = await exportJWK(key.privateKey);
const secret = await generateSecret("HS256", { extractable: true });
const secretJwk = await exportJWK(secret);
const [header = "", payload = "", signature = ""] = (await proofFor()).split(".");

function proofFor({ header, claims }: Proof = {}, signer = key): Promise<string> {
  const own = { htm: "GET", htu: ORIGIN + PATH, ath: athOf(token), ...claims };
  return signProof(signer, { ...(header && { header }), claims: own });
}

const checkProof = createCheckProof({
  origin: ORIGIN,
  nonces: createDpopNonces(Buffer.alloc(32, 1)),
  isFirstUse: async () => true,
});

async function check(dpop: string[]): Promise<string | undefined> {
  let nonce: string | undefined;
  const set = (_name: string, value: string) => {
    nonce = value;
  };
  const ctx = { method: "GET", path: PATH, req: { headersDistinct: { dpop } }, set };
  await checkProof(ctx as unknown as Context, { token, jkt: key.jkt });
  return nonce;
}

const encode = (value: object) => base64url.encode(JSON.stringify(value));
const decode = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());

const INVALID = "invalid_dpop_proof";
const NONCE = "use_dpop_nonce";
const changed = (changes: Proof, code = INVALID): [() => Promise<string[]>, string] => [
  async () => [await proofFor(changes)],
  code,
];
const claim = (claims: Record<string, unknown>, code = INVALID) => changed({ claims }, code);
const htu = (uri: string) => claim({ htu: uri });
const literal = (...proofs: string[]): [() => Promise<string[]>, string] => [async () => proofs, INVALID];
const signedBy = async (alg: string, signer?: DpopKey, header = {}) => [
  await proofFor({ header }, signer ?? (await createDpopKey(alg))),
];

const signSymmetrically = () =>
  new SignJWT({ jti: "x", iat: now(), htm: "GET", htu: ORIGIN + PATH, ath: athOf(token) })
    .setProtectedHeader({ alg: "HS256", typ: "dpop+jwt", jwk: secretJwk })
    .sign(secret);

const REFUSED: [what: string, proofs: () => Promise<string[]>, code: string][] = [
  ["no proof", ...literal()],
  ["an empty DPoP header", ...literal("")],
  ["two proofs in two headers", async () => [await proofFor(), await proofFor()], INVALID],
  ["two proofs in one header", async () => [`${await proofFor()}, ${await proofFor()}`], INVALID],
  ["the access token as the proof", ...literal(token)],
  ["a header that is no JSON", ...literal(`${base64url.encode("{")}.${payload}.${signature}`)],
  ["no signature", ...literal(`${header}.${payload}.`)],
  ["the signature of another proof", async () => [(await proofFor()).replace(/[^.]+$/, signature)], INVALID],
  ["a changed payload", ...literal(`${header}.${encode({ ...decode(payload), jti: "x" })}.${signature}`)],
  ["no typ", ...changed({ header: { typ: undefined } })],
  ["the typ JWT", ...changed({ header: { typ: "JWT" } })],
  ["the alg none", ...literal(`${encode({ ...decode(header), alg: "none" })}.${payload}.`)],
  ["a symmetric alg and key", async () => [await signSymmetrically()], INVALID],
  ["the alg RS256", () => signedBy("RS256"), INVALID],
  ["no jwk", ...changed({ header: { jwk: undefined } })],
  ["the private key as the jwk", ...changed({ header: { jwk: privateJwk } })],
  ["a symmetric jwk", ...changed({ header: { jwk: secretJwk } })],
  ["a jwk for encryption", ...changed({ header: { jwk: { ...key.jwk, use: "enc" } } })],
  ["a jwk that isn't a point of the curve", ...changed({ header: { jwk: { ...key.jwk, x: key.jwk.y } } })],
  ["the jwk of another key", ...changed({ header: { jwk: otherKey.jwk } }, "invalid_token")],
  ["the token's jwk, but not its key", () => signedBy("ES256", otherKey, { jwk: key.jwk }), INVALID],
  ["a proof of another key", () => signedBy("ES256", otherKey), "invalid_token"],
  ["no jti", ...claim({ jti: undefined })],
  ["a jti that is no string", ...claim({ jti: 1 })],
  ["no iat", ...claim({ iat: undefined })],
  ["an iat that is no number", ...claim({ iat: String(now()) })],
  ["an iat six minutes ago", ...claim({ iat: now() - 360 }, NONCE)],
  ["an iat in six minutes", ...claim({ iat: now() + 360 }, NONCE)],
  ["an exp in the past", ...claim({ exp: now() - 60 })],
  ["an nbf in the future", ...claim({ nbf: now() + 120 })],
  ["no htm", ...claim({ htm: undefined })],
  ["another method", ...claim({ htm: "DELETE" })],
  ["no htu", ...claim({ htu: undefined })],
  ["an htu that is no URL", ...htu(PATH)],
  ["an htu of another path", ...htu(`${ORIGIN}/v1/webhooks`)],
  ["an htu of another host", ...htu(`http://evil.example${PATH}`)],
  ["an htu of another scheme", ...htu(`https://localhost:8080${PATH}`)],
  ["an htu with a trailing slash", ...htu(`${ORIGIN}${PATH}/`)],
  ["no ath", ...claim({ ath: undefined })],
  ["the ath of another token", ...claim({ ath: athOf("lga_other") })],
  ["the token as the ath", ...claim({ ath: token })],
  ["an unknown nonce", ...claim({ nonce: "A".repeat(43) }, NONCE)],
  ["a nonce that is no string", ...claim({ nonce: 1 }, NONCE)],
];

for (const [what, proofs, code] of REFUSED)
  test(`the check of proofs rejects ${what}`, async (t) => {
    const error = await t.throwsAsync(check(await proofs()), { instanceOf: Unauthorized });
    t.is(error?.code as string, code);
  });

const ACCEPTED: [what: string, changes: Proof][] = [
  ["an iat four minutes ago", { claims: { iat: now() - 240 } }],
  ["an iat in four minutes", { claims: { iat: now() + 240 } }],
  ["an htu with a query", { claims: { htu: `${ORIGIN}${PATH}?limit=1` } }],
  ["an htu with a fragment", { claims: { htu: `${ORIGIN}${PATH}#top` } }],
  ["an htu with an upper-case scheme and host", { claims: { htu: ORIGIN.toUpperCase() + PATH } }],
  ["an htu with a dot segment", { claims: { htu: `${ORIGIN}/x/..${PATH}` } }],
  ["an htu with an escaped letter", { claims: { htu: `${ORIGIN}/v1/%6cinks` } }],
  ["a jwk with more members", { header: { jwk: { ...key.jwk, kid: "1", use: "sig", alg: "ES256" } } }],
  ["more claims", { claims: { iss: "client", exp: now() + 60 } }],
];
for (const [what, changes] of ACCEPTED)
  test(`the check of proofs accepts ${what}`, async (t) => {
    t.regex((await check([await proofFor(changes)])) ?? "", /^[\w-]{43}$/, "the next nonce");
  });
