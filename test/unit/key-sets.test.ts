import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import test from "ava";
import { FetchFailed, type GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import { createKeySets } from "../../server/assertions/key-sets.ts";
import { InvalidJwt, verifyJwt } from "../../server/assertions/verify-jwt.ts";

const ISSUER = "https://issuer.example";
const AUDIENCE = "https://links.example";
const DISCOVERY = `${ISSUER}/.well-known/openid-configuration`;
const KEYS = `${ISSUER}/jwks`;
const METADATA = { issuer: ISSUER, jwks_uri: KEYS };

const strong = generateKeyPairSync("rsa", { modulusLength: 2048 });
const short = generateKeyPairSync("rsa", { modulusLength: 1024 });
const jwkOf = (key: KeyObject) => ({ ...key.export({ format: "jwk" }), kid: "k", alg: "RS256" });
const [key, shortKey] = [jwkOf(strong.publicKey), jwkOf(short.publicKey)];

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

/** Signs valid claims with RS256 and any key, also with one that libraries refuse. */
function sign(privateKey: KeyObject): string {
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: ISSUER, aud: AUDIENCE, iat, exp: iat + 60 };
  const content = `${encode({ alg: "RS256", kid: "k" })}.${encode(claims)}`;
  return `${content}.${createSign("sha256").update(content).sign(privateKey, "base64url")}`;
}

type Published = Record<string, unknown>;
const PUBLISHED: Published = { [DISCOVERY]: METADATA, [KEYS]: { keys: [key] } };

/** Returns what fetches these documents: a text is the body, a number the status. */
function fetchFrom(published: Published, requests: string[] = []): GuardedFetch {
  return async (input) => {
    const url = String(input);
    requests.push(url);
    const body = published[url];
    if (body === undefined) throw new FetchFailed("the address is not public");
    if (typeof body === "number") return new Response(null, { status: body });
    return new Response(typeof body === "string" ? body : JSON.stringify(body));
  };
}

async function verify(published: Published, privateKey: KeyObject) {
  const keys = await createKeySets(fetchFrom(published)).ofIssuer(ISSUER);
  return verifyJwt(sign(privateKey), { issuer: ISSUER, audiences: [AUDIENCE], keys, maxAgeS: 300 });
}

test("a token is verified with the keys that the metadata of its issuer names", async (t) => {
  await t.notThrowsAsync(verify(PUBLISHED, strong.privateKey));
});

const METADATA_FAULTS: [what: string, metadata: unknown][] = [
  ["metadata that is no JSON", "<html>"],
  ["metadata of another issuer", { issuer: "https://other.example", jwks_uri: KEYS }],
  ["metadata without a jwks_uri", { issuer: ISSUER }],
  ["a jwks_uri that is no URL", { issuer: ISSUER, jwks_uri: "/jwks" }],
  ["a jwks_uri that can't be fetched", { issuer: ISSUER, jwks_uri: "https://10.0.0.1/jwks" }],
  ["metadata that is moved", 302],
  ["metadata that can't be fetched", undefined],
];

const KEY_FAULTS: [what: string, keys: unknown][] = [
  ["keys that are no JSON", "nothing"],
  ["a key that is malformed", { keys: [{ kty: "RSA", kid: "k", n: "", e: 1 }] }],
  ["a symmetric key", { keys: [{ kty: "oct", kid: "k", k: "c2VjcmV0" }] }],
  ["a key for encryption", { keys: [{ ...key, use: "enc" }] }],
  ["a key for another algorithm", { keys: [{ ...key, alg: "PS256" }] }],
  ["a key of another id", { keys: [{ ...key, kid: "other" }] }],
  ["two keys with one id", { keys: [key, key] }],
];

const FAULTS: [what: string, published: Published, privateKey?: KeyObject][] = [
  ...METADATA_FAULTS.map(([what, metadata]) => [what, { [DISCOVERY]: metadata }] as [string, Published]),
  ...KEY_FAULTS.map(([what, keys]) => [what, { [KEYS]: keys }] as [string, Published]),
  ["a key of 1024 bits", { [KEYS]: { keys: [shortKey] } }, short.privateKey],
];

for (const [what, changes, privateKey = strong.privateKey] of FAULTS)
  test(`tokens of an issuer with ${what} are refused`, async (t) => {
    await t.throwsAsync(verify({ ...PUBLISHED, ...changes }, privateKey), { instanceOf: InvalidJwt });
  });

test("metadata and keys are fetched once for many tokens, and a failure isn't kept", async (t) => {
  const published = { ...PUBLISHED, [DISCOVERY]: 503 as unknown };
  const requests: string[] = [];
  const keySets = createKeySets(fetchFrom(published, requests));
  await t.throwsAsync(keySets.ofIssuer(ISSUER), { instanceOf: InvalidJwt });
  published[DISCOVERY] = METADATA;
  requests.length = 0;
  for (let count = 0; count < 3; count++) {
    const keys = await keySets.ofIssuer(ISSUER);
    const rules = { issuer: ISSUER, audiences: [AUDIENCE], keys, maxAgeS: 300 };
    await t.notThrowsAsync(verifyJwt(sign(strong.privateKey), rules));
  }
  t.deepEqual(requests, [DISCOVERY, KEYS]);
});
