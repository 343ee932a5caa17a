import test from "ava";
import { base64url, exportJWK, generateSecret, SignJWT } from "jose";
import { athOf, createDpopKey, type DpopKey, type Proof } from "../../harness/clients/dpop.ts";
import { isRejected, startDpopTargets, type Target } from "../../harness/dpop-targets.ts";

const { targets, send, proofFor, close, ...fixture } = await startDpopTargets();
const { service, key, otherKey, token, bearerToken, api } = fixture;
const privateJwk = await exportJWK(key.privateKey);
const secret = await generateSecret("HS256", { extractable: true });
const secretJwk = await exportJWK(secret);
const [header = "", payload = "", signature = ""] = (await proofFor(api)).split(".");
test.after.always(close);

const now = () => Math.floor(Date.now() / 1000);
const encode = (value: object) => base64url.encode(JSON.stringify(value));
const decode = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());

const INVALID = "invalid_dpop_proof";
const NONCE = "use_dpop_nonce";
const changed = (changes: Proof, code = INVALID): [(target: Target) => Promise<string[]>, string] => [
  async (target) => [await proofFor(target, changes)],
  code,
];
const claim = (claims: Record<string, unknown>, code = INVALID) => changed({ claims }, code);
const literal = (...proofs: string[]): [(target: Target) => Promise<string[]>, string] => [
  async () => proofs,
  INVALID,
];
const signedBy = async (target: Target, alg: string, signer?: DpopKey) => [
  await proofFor(target, {}, signer ?? (await createDpopKey(alg))),
];

const REFUSED: [what: string, proofs: (target: Target) => Promise<string[]>, code: string][] = [
  ["no proof", ...literal()],
  ["an empty DPoP header", ...literal("")],
  ["two proofs in two headers", async (to) => [await proofFor(to), await proofFor(to)], INVALID],
  ["two proofs in one header", async (to) => [`${await proofFor(to)}, ${await proofFor(to)}`], INVALID],
  ["a word as the proof", ...literal("proof")],
  ["the access token as the proof", ...literal(token)],
  ["two parts", ...literal(`${header}.${payload}`)],
  ["five parts", ...literal(`${header}.${payload}.${signature}.${payload}.${signature}`)],
  ["a header that is no JSON", ...literal(`${base64url.encode("{")}.${payload}.${signature}`)],
  ["no signature", ...literal(`${header}.${payload}.`)],
  [
    "the signature of another proof",
    async (to) => [(await proofFor(to)).replace(/[^.]+$/, signature)],
    INVALID,
  ],
  [
    "a changed payload",
    async (to) => {
      const [head, body = "", sign] = (await proofFor(to)).split(".");
      return [`${head}.${encode({ ...decode(body), jti: "another" })}.${sign}`];
    },
    INVALID,
  ],
  ["no typ", ...changed({ header: { typ: undefined } })],
  ["the typ JWT", ...changed({ header: { typ: "JWT" } })],
  ["the typ at+jwt", ...changed({ header: { typ: "at+jwt" } })],
  [
    "the alg none",
    async (to) => {
      const [head = "", body] = (await proofFor(to)).split(".");
      return [`${encode({ ...decode(head), alg: "none" })}.${body}.`];
    },
    INVALID,
  ],
  [
    "a symmetric alg and key",
    async ({ method, path }) => [
      await new SignJWT({ jti: "x", iat: now(), htm: method, htu: service.url + path, ath: athOf(token) })
        .setProtectedHeader({ alg: "HS256", typ: "dpop+jwt", jwk: secretJwk })
        .sign(secret),
    ],
    INVALID,
  ],
  ["the alg ES384", (to) => signedBy(to, "ES384"), INVALID],
  ["the alg RS256", (to) => signedBy(to, "RS256"), INVALID],
  ["no jwk", ...changed({ header: { jwk: undefined } })],
  ["a jwk that is no object", ...changed({ header: { jwk: "key" } })],
  ["an empty jwk", ...changed({ header: { jwk: {} } })],
  ["the private key as the jwk", ...changed({ header: { jwk: privateJwk } })],
  ["a symmetric jwk", ...changed({ header: { jwk: secretJwk } })],
  ["a jwk for encryption", ...changed({ header: { jwk: { ...key.jwk, use: "enc" } } })],
  ["a jwk that isn't a point of the curve", ...changed({ header: { jwk: { ...key.jwk, x: key.jwk.y } } })],
  ["the jwk of another key", ...changed({ header: { jwk: otherKey.jwk } }, "invalid_token")],
  [
    "the jwk of the token, signed by another key",
    async (to) => [await proofFor(to, { header: { jwk: key.jwk } }, otherKey)],
    INVALID,
  ],
  ["a proof of another key", (to) => signedBy(to, "ES256", otherKey), "invalid_token"],
  ["no jti", ...claim({ jti: undefined })],
  ["an empty jti", ...claim({ jti: "" })],
  ["a jti that is no string", ...claim({ jti: 1 })],
  ["no iat", ...claim({ iat: undefined })],
  ["an iat that is no number", ...claim({ iat: String(now()) })],
  ["an iat six minutes ago", ...claim({ iat: now() - 360 }, NONCE)],
  ["an iat in six minutes", ...claim({ iat: now() + 360 }, NONCE)],
  ["an exp in the past", ...claim({ exp: now() - 60 })],
  ["an nbf in the future", ...claim({ nbf: now() + 120 })],
  ["no htm", ...claim({ htm: undefined })],
  ["another method", ...claim({ htm: "DELETE" })],
  [
    "the method in lower case",
    async (to) => [await proofFor(to, { claims: { htm: to.method.toLowerCase() } })],
    INVALID,
  ],
  ["no htu", ...claim({ htu: undefined })],
  ["an htu that is no URL", ...claim({ htu: "/v1/links" })],
  ["an htu of another path", ...claim({ htu: `${service.url}/v1/webhooks` })],
  ["an htu of the token endpoint", ...claim({ htu: `${service.url}/oauth/token` })],
  ["an htu of the origin", ...claim({ htu: service.url })],
  [
    "an htu of another host",
    async (to) => [await proofFor(to, { claims: { htu: `http://evil.example${to.path}` } })],
    INVALID,
  ],
  [
    "an htu of another port",
    async (to) => [await proofFor(to, { claims: { htu: `http://localhost:1${to.path}` } })],
    INVALID,
  ],
  [
    "an htu of another scheme",
    async (to) => [await proofFor(to, { claims: { htu: service.url.replace("http:", "https:") + to.path } })],
    INVALID,
  ],
  [
    "an htu with a username",
    async (to) => [await proofFor(to, { claims: { htu: service.url.replace("//", "//user@") + to.path } })],
    INVALID,
  ],
  [
    "an htu with a trailing slash",
    async (to) => [await proofFor(to, { claims: { htu: `${service.url}${to.path}/` } })],
    INVALID,
  ],
  [
    "an htu in upper case",
    async (to) => [await proofFor(to, { claims: { htu: service.url + to.path.toUpperCase() } })],
    INVALID,
  ],
  ["no ath", ...claim({ ath: undefined })],
  ["the ath of another token", ...claim({ ath: athOf(bearerToken) })],
  ["the token as the ath", ...claim({ ath: token })],
  ["the ath with padding", ...claim({ ath: `${athOf(token)}=` })],
  ["an unknown nonce", ...claim({ nonce: "A".repeat(43) }, NONCE)],
  ["an empty nonce", ...claim({ nonce: "" }, NONCE)],
  ["a nonce that is no string", ...claim({ nonce: 1 }, NONCE)],
];

for (const target of targets) {
  for (const [what, proofs, code] of REFUSED) {
    test.serial(`${target.name} rejects ${what}`, async (t) => {
      const answer = await send(target, await proofs(target));
      isRejected(t, answer, code);
      if (code === NONCE) t.regex(answer.nonce ?? "", /^[\w-]{43}$/);
    });
  }
}

const ACCEPTED: [what: string, changes: (target: Target) => Proof][] = [
  ["an iat four minutes ago", () => ({ claims: { iat: now() - 240 } })],
  ["an iat in four minutes", () => ({ claims: { iat: now() + 240 } })],
  ["an htu with a query", ({ path }) => ({ claims: { htu: `${service.url}${path}?limit=1` } })],
  ["an htu with a fragment", ({ path }) => ({ claims: { htu: `${service.url}${path}#top` } })],
  [
    "an htu with an upper-case scheme and host",
    ({ path }) => ({
      claims: { htu: service.url.toUpperCase() + path },
    }),
  ],
  ["an htu with a dot segment", ({ path }) => ({ claims: { htu: `${service.url}/x/..${path}` } })],
  [
    "an htu with an escaped letter",
    ({ path }) => ({
      claims: { htu: `${service.url}/%${path.charCodeAt(1).toString(16)}${path.slice(2)}` },
    }),
  ],
  [
    "a jwk with more members",
    () => ({
      header: { jwk: { ...key.jwk, kid: "1", use: "sig", alg: "ES256" } },
    }),
  ],
  ["more claims", () => ({ claims: { iss: "client", exp: now() + 60 } })],
];

for (const target of targets.slice(0, 2)) {
  for (const [what, changes] of ACCEPTED) {
    test.serial(`${target.name} accepts ${what}`, async (t) => {
      const answer = await send(target, [await proofFor(target, changes(target))]);
      t.is(answer.status, 200, answer.text);
    });
  }
}
