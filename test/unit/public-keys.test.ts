import { generateKeyPairSync, type KeyObject } from "node:crypto";
import test from "ava";
import { InvalidKey, parsePublicKey } from "../../server/credentials/public-keys.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed = generateKeyPairSync("ed25519");

const jwk = (key: KeyObject, members: object = {}) =>
  JSON.stringify({ ...key.export({ format: "jwk" }), ...members });
const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();

for (const [name, { publicKey }] of Object.entries({ RSA: rsa, EC: ec, Ed25519: ed }))
  test(`an ${name} key is the same in PEM and as a JWK`, async (t) => {
    const fromPem = await parsePublicKey(`\n${pem(publicKey)}\n`);
    const fromJwk = await parsePublicKey(jwk(publicKey, { kid: "mine", use: "sig" }));
    t.deepEqual(fromPem, fromJwk);
    t.regex(fromPem.thumbprint, /^[\w-]{43}$/);
  });

const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
const FORMS = /^must be a public key: a JWK, or PEM/;
const OTHER_TYPE = /^must be an RSA key, an EC key/;
const PRIVATE = /^must be the public key, not the private one/;

const REFUSED: [name: string, text: string, rule: RegExp][] = [
  ["nothing", " ", /^is required$/],
  ["a private key in PEM", ec.privateKey.export({ type: "pkcs8", format: "pem" }).toString(), PRIVATE],
  ["a private key as a JWK", jwk(ec.privateKey), PRIVATE],
  ["a shared secret", '{"kty":"oct","k":"c2VjcmV0"}', /^must be a public key, not a shared secret$/],
  ["a JWK set", JSON.stringify({ keys: [ec.publicKey.export({ format: "jwk" })] }), /^must be a single key/],
  ["invalid JSON", "{", /^must be valid JSON/],
  ["a point that is not on the curve", jwk(ec.publicKey, { x: "AAAA" }), FORMS],
  ["a key for encryption", jwk(rsa.publicKey, { use: "enc" }), /^must be a key for signatures$/],
  ["a short RSA key", pem(weak.publicKey), /^must have 2048 to 8192 bits/],
  ["another curve", pem(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey), OTHER_TYPE],
  ["a key for key agreement", pem(generateKeyPairSync("x25519").publicKey), OTHER_TYPE],
  [
    "broken PEM",
    "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
    /^must be a complete public key: /,
  ],
  ["too much", "{".padEnd(20_000, "x"), /^must be at most 16,384 characters$/],
];

for (const [name, text, message] of REFUSED)
  test(`${name} is refused`, async (t) => {
    await t.throwsAsync(parsePublicKey(text), { instanceOf: InvalidKey, message });
  });

test("a JWK is refused whose alg doesn't fit the key, isn't accepted, is symmetric, none or no text", async (t) => {
  const parse = (alg: unknown) => parsePublicKey(jwk(ec.publicKey, { alg }));
  const refused = { instanceOf: InvalidKey, message: /^must have an alg that fits it/ };
  for (const alg of ["RS256", "ES256K", "HS256", "none", 256])
    await t.throwsAsync(parse(alg), refused, String(alg));
  t.is((await parse("ES256")).jwk.alg, "ES256");
});
