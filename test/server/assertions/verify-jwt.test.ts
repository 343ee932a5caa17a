import test from "ava";
import {
  type CryptoKey,
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  SignJWT,
} from "jose";
import { InvalidJwt, verifyJwt } from "../../../server/assertions/verify-jwt.ts";

const ISSUER = "https://issuer.example";
const AUDIENCE = "https://links.example";
const now = Math.floor(Date.now() / 1000);

const { publicKey, privateKey } = await generateKeyPair("ES256");
const { privateKey: otherKey } = await generateKeyPair("ES256");
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

const REFUSED: [name: string, token: () => Promise<string> | string, message: string, further?: object][] = [
  ["no token", () => "", "the JWT is malformed"],
  ["not a JWT", () => "a.b.c", "the JWT is malformed"],
  ["another issuer", () => sign({ iss: "https://other.example" }), "iss has an unexpected value"],
  ["the issuer with a slash", () => sign({ iss: `${ISSUER}/` }), "iss has an unexpected value"],
  ["no issuer", () => sign({ iss: undefined }), "iss is missing"],
  ["another audience", () => sign({ aud: "https://other.example" }), "aud has an unexpected value"],
  ["no audience", () => sign({ aud: undefined }), "aud is missing"],
  ["an empty list of audiences", () => sign({ aud: [] }), "aud has an unexpected value"],
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
  ["a time as text", () => sign({ exp: "tomorrow" as unknown as number }), "exp has an unexpected value"],
  ["another key", () => sign({}, { key: otherKey }), "the signature is invalid"],
  ["an unknown key id", () => sign({}, { header: { kid: "two" } }), "no key of the issuer matches"],
  [
    "an algorithm that is not on the list",
    () => sign({}, { key: weakKey, header: { alg: "RS512" } }),
    "the signing algorithm is not allowed",
  ],
  [
    "no signature",
    () => `${encode({ alg: "none" })}.${encode(CLAIMS)}.`,
    "the signing algorithm is not allowed",
  ],
  [
    "a changed payload",
    async () => (await sign()).replace(/\.[^.]+\./, `.${encode({ ...CLAIMS, sub: "x" })}.`),
    "the signature is invalid",
  ],
  [
    "another type",
    () => sign({}, { header: { typ: "JWT" } }),
    "the JWT has the wrong typ",
    { type: "oauth-id-jag+jwt" },
  ],
  ["no type", () => sign(), "the JWT has the wrong typ", { type: "oauth-id-jag+jwt" }],
  ["a required claim is missing", () => sign(), "sub is missing", { requiredClaims: ["sub"] }],
  [
    "a critical header that is unknown",
    () => `${encode({ alg: "ES256", kid: "one", crit: ["x"], x: 1 })}.${encode(CLAIMS)}.AAAA`,
    "the JWT is malformed",
  ],
];

for (const [name, token, message, further] of REFUSED) {
  test(`a JWT is refused: ${name}`, async (t) => {
    await t.throwsAsync(async () => verifyJwt(await token(), { ...rules, ...further }), {
      instanceOf: InvalidJwt,
      message,
    });
  });
}
