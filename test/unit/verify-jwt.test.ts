import test from "ava";
import type { CryptoKey, JWTHeaderParameters } from "jose";
import { CompactSign, createLocalJWKSet, exportJWK, FlattenedSign, generateKeyPair, SignJWT } from "jose";
import { InvalidJwt, verifyJwt } from "../../server/assertions/verify-jwt.ts";

const ISSUER = "https://issuer.example";
const AUDIENCE = "https://links.example";
const now = Math.floor(Date.now() / 1000);

const { publicKey, privateKey } = await generateKeyPair("ES256");
const { privateKey: otherKey, publicKey: otherPublic } = await generateKeyPair("ES256");
const otherJwk = await exportJWK(otherPublic);
const { privateKey: weakKey } = await generateKeyPair("RS512");
const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), kid: "one" }] });
const rules = { issuer: ISSUER, audiences: [AUDIENCE], keys, maxAgeS: 300 };

const CLAIMS = { iss: ISSUER, aud: AUDIENCE, iat: now, exp: now + 60, jti: "id" };

/** Signs claims; a claim set to undefined is left out. */
function sign(
  claims: object = {},
  { header, key = privateKey }: { header?: Partial<JWTHeaderParameters>; key?: CryptoKey } = {},
) {
  return new SignJWT({ ...CLAIMS, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "one", ...header })
    .sign(key);
}

async function signSymmetrically(): Promise<string> {
  const secret = Buffer.from(JSON.stringify(await exportJWK(publicKey)));
  return new SignJWT(CLAIMS).setProtectedHeader({ alg: "HS256", kid: "one" }).sign(secret);
}

const signList = () =>
  new CompactSign(Buffer.from("[]")).setProtectedHeader({ alg: "ES256", kid: "one" }).sign(privateKey);

/** Signs claims that are not encoded (RFC 7797). The dots in them are escaped: there is a dot before and after them. */
async function signUnencoded(): Promise<string> {
  const payload = JSON.stringify(CLAIMS).replaceAll(".", "\\u002e");
  const jws = await new FlattenedSign(Buffer.from(payload))
    .setProtectedHeader({ alg: "ES256", kid: "one", crit: ["b64"], b64: false })
    .sign(privateKey);
  return `${jws.protected}.${payload}.${jws.signature}`;
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a valid JWT is accepted with its claims", async (t) => {
  const { claims, header } = await verifyJwt(await sign(), rules);
  t.like(claims, CLAIMS);
  t.is(header.kid, "one");
});

test("one of several audiences is enough, unless there must be only one", async (t) => {
  const token = await sign({ aud: ["https://other.example", AUDIENCE] });
  t.truthy(await verifyJwt(token, rules));
  await t.throwsAsync(verifyJwt(token, { ...rules, isSingleAudience: true }), {
    instanceOf: InvalidJwt,
    message: "aud must be a single value",
  });
  await t.notThrowsAsync(verifyJwt(await sign({ aud: [AUDIENCE] }), { ...rules, isSingleAudience: true }));
});

test("a clock that differs by 20 seconds is accepted, in both directions", async (t) => {
  t.truthy(await verifyJwt(await sign({ exp: now - 20 }), rules));
  t.truthy(await verifyJwt(await sign({ iat: now + 20, nbf: now + 20 }), rules));
});

const ALGORITHM = "the signing algorithm is not allowed";
const MALFORMED = "the JWT is malformed";
const WRONG_SIGNATURE = "the signature is invalid";
const NO_KEY = "no key of the issuer matches";
const WRONG_TYPE = "the JWT has the wrong typ";
const ELSEWHERE = { kid: "two", jku: "https://evil.example/jwks" };
const CHANGED = `.${encode({ ...CLAIMS, sub: "x" })}.`;
const TYPED = { type: "oauth-id-jag+jwt" };
const bare = (header: object) => `${encode(header)}.${encode(CLAIMS)}.AAAA`;

const REFUSED: [name: string, token: () => Promise<string> | string, message: string, further?: object][] = [
  ["another issuer", () => sign({ iss: "https://other.example" }), "iss has an unexpected value"],
  ["no issuer", () => sign({ iss: undefined }), "iss is missing"],
  ["another audience", () => sign({ aud: "https://other.example" }), "aud has an unexpected value"],
  ["no audience", () => sign({ aud: undefined }), "aud is missing"],
  ["a subject that is a number", () => sign({ sub: 5 }), "sub must be a string"],
  [
    "a subject that can't become text",
    () => sign({ sub: { toString: 1, valueOf: 1 } }),
    "sub must be a string",
  ],
  ["expired", () => sign({ exp: now - 60 }), "the JWT has expired"],
  ["no expiry", () => sign({ exp: undefined }), "exp is missing"],
  ["no time of issue", () => sign({ iat: undefined }), "iat is missing"],
  [
    "issued in the future",
    () => sign({ iat: now + 120, exp: now + 240 }),
    "the JWT was issued in the future",
  ],
  ["too old", () => sign({ iat: now - 400 }), "the JWT is too old"],
  ["not valid yet", () => sign({ nbf: now + 120 }), "the JWT is not valid yet"],
  ["a time as text", () => sign({ exp: "tomorrow" }), "exp has an unexpected value"],
  ["no token", () => "", MALFORMED],
  ["claims that are a list", signList, MALFORMED],
  ["another key", () => sign({}, { key: otherKey }), WRONG_SIGNATURE],
  ["a key of its own header", () => sign({}, { key: otherKey, header: { jwk: otherJwk } }), WRONG_SIGNATURE],
  ["a key at a URL of its own header", () => sign({}, { key: otherKey, header: ELSEWHERE }), NO_KEY],
  ["an unknown key id", () => sign({}, { header: { kid: "two" } }), NO_KEY],
  ["an algorithm that isn't listed", () => sign({}, { key: weakKey, header: { alg: "RS512" } }), ALGORITHM],
  ["no signature", () => `${encode({ alg: "none" })}.${encode(CLAIMS)}.`, ALGORITHM],
  ["an HMAC with the public key", () => signSymmetrically(), ALGORITHM],
  ["an algorithm that is no text", () => bare({ alg: 256, kid: "one" }), MALFORMED],
  ["an algorithm of another key type", () => bare({ alg: "RS256", kid: "one" }), NO_KEY],
  ["a changed payload", async () => (await sign()).replace(/\.[^.]+\./, CHANGED), WRONG_SIGNATURE],
  ["another type", () => sign({}, { header: { typ: "JWT" } }), WRONG_TYPE, TYPED],
  ["a required claim is missing", () => sign(), "sub is missing", { requiredClaims: ["sub"] }],
  ["an unknown critical header", () => bare({ alg: "ES256", kid: "one", crit: ["x"], x: 1 }), MALFORMED],
  ["an unencoded payload", signUnencoded, MALFORMED],
];

for (const [name, token, message, further] of REFUSED)
  test(`a JWT is refused: ${name}`, async (t) => {
    const verification = async () => verifyJwt(await token(), { ...rules, ...further });
    await t.throwsAsync(verification, { instanceOf: InvalidJwt, message });
  });
