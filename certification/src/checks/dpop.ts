import { createHash, randomUUID } from "node:crypto";
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import type { Check } from "../check.ts";
import { type Conversation, expectError, type Reply } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

type Key = { privateKey: CryptoKey; jwk: JWK; jkt: string };
type Claims = Record<string, unknown>;
type Header = Record<string, unknown>;

const ALG = "ES256";

async function createKey(): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(ALG, { extractable: true });
  const jwk = await exportJWK(publicKey);
  return { privateKey, jwk, jkt: await calculateJwkThumbprint(jwk) };
}

function sign({ privateKey, jwk }: Key, claims: Claims, header: Header = {}): Promise<string> {
  return new SignJWT({ jti: randomUUID(), iat: Math.floor(Date.now() / 1000), ...claims })
    .setProtectedHeader({ alg: ALG, typ: "dpop+jwt", jwk, ...header })
    .sign(privateKey);
}

function requireDpop({ target }: Conversation): void {
  const algs = target.metadata.dpop_signing_alg_values_supported ?? [];
  needs(algs.includes(ALG), "no DPoP with ES256");
}

type Variation = {
  claims?: Claims;
  header?: Header;
  change?: (proof: string) => string;
  /** Whether it is sent without a nonce, with which the time of a proof doesn't matter (§11.1). */
  isWithoutNonce?: boolean;
};

/** Requests a token with a proof that is valid but for the variation. Repeats it once with a nonce (RFC 9449 §8). */
async function request(
  conversation: Conversation,
  key: Key,
  { claims, header, change, isWithoutNonce }: Variation = {},
): Promise<Reply> {
  requireDpop(conversation);
  const proofOf = async (extra: Claims) => {
    const all = { htm: "POST", htu: conversation.endpoint("token"), ...extra, ...claims };
    const proof = await sign(key, all, header);
    return change ? change(proof) : proof;
  };
  const reply = await conversation.token({}, { headers: { dpop: await proofOf({}) } });
  const nonce = reply.headers.get("dpop-nonce");
  if (isWithoutNonce || reply.body.error !== "use_dpop_nonce" || !nonce) return reply;
  return conversation.token({}, { headers: { dpop: await proofOf({ nonce }) } });
}

async function boundToken(conversation: Conversation, key: Key): Promise<string> {
  const { status, body } = await request(conversation, key);
  expect(
    status === 200 && String(body.token_type).toLowerCase() === "dpop",
    "the client gets no bound token",
  );
  return String(body.access_token);
}

/** Calls the resource with a proof that is valid but for the variation. */
async function call(
  conversation: Conversation,
  key: Key,
  token: string,
  { claims, header, change, isWithoutNonce }: Variation = {},
) {
  const ath = createHash("sha256").update(token).digest("base64url");
  const proofOf = async (extra: Claims) => {
    const proof = await sign(
      key,
      { htm: "GET", htu: conversation.resource, ath, ...extra, ...claims },
      header,
    );
    return change ? change(proof) : proof;
  };
  const send = async (extra: Claims) =>
    conversation.call(token, { scheme: "DPoP", headers: { dpop: await proofOf(extra) } });
  const reply = await send({});
  const nonce = reply.headers.get("dpop-nonce");
  const wantsNonce = /use_dpop_nonce/.test(reply.headers.get("www-authenticate") ?? "");
  return wantsNonce && nonce && !isWithoutNonce ? send({ nonce }) : reply;
}

const second = (offset: number) => Math.floor(Date.now() / 1000) + offset;

const INVALID: [id: string, what: string, clause: string, variation: () => Variation][] = [
  ["htm", "with another method", "§4.3(8)", () => ({ claims: { htm: "PUT" } })],
  ["htu", "with another URL", "§4.3(9)", () => ({ claims: { htu: "https://other.example/" } })],
  ["no-jti", "without jti", "§4.3(3)", () => ({ claims: { jti: undefined } })],
  ["no-iat", "without iat", "§4.3(3)", () => ({ claims: { iat: undefined } })],
  [
    "old",
    "that is an hour old",
    "§4.3(11)",
    () => ({ claims: { iat: second(-3600) }, isWithoutNonce: true }),
  ],
  [
    "future",
    "from an hour later",
    "§4.3(11)",
    () => ({ claims: { iat: second(3600) }, isWithoutNonce: true }),
  ],
  ["typ", "with another typ", "§4.3(4)", () => ({ header: { typ: "JWT" } })],
  ["no-jwk", "without a key", "§4.3(6)", () => ({ header: { jwk: undefined } })],
  [
    "none",
    "without a signature",
    "§4.3(5)",
    () => ({
      change: (proof) => {
        const [header = "", payload] = proof.split(".");
        const unsigned = { ...JSON.parse(Buffer.from(header, "base64url").toString()), alg: "none" };
        return `${Buffer.from(JSON.stringify(unsigned)).toString("base64url")}.${payload}.`;
      },
    }),
  ],
  [
    "signature",
    "with a wrong signature",
    "§4.3(6)",
    () => ({
      change: (proof) => proof.replace(/\.[^.]+$/, ([, ...signature]) => `.${signature.reverse().join("")}`),
    }),
  ],
  ["malformed", "that is no JWT", "§4.3(2)", () => ({ change: () => "no-proof" })],
];

const INVALID_AT_RESOURCE: [id: string, what: string, clause: string, variation: () => Variation][] = [
  ["no-ath", "without ath", "§4.3(12)", () => ({ claims: { ath: undefined } })],
  ["ath", "with another ath", "§4.3(12)", () => ({ claims: { ath: "a".repeat(43) } })],
];

export const dpopChecks: Check[] = [
  {
    id: "dpop-token",
    title: "A token request with a proof gets a bound token",
    clause: "RFC 9449 §5",
    async run(conversation) {
      await boundToken(conversation, await createKey());
    },
  },
  {
    id: "dpop-introspection",
    title: "Introspection names the key of a bound token",
    clause: "RFC 9449 §6.2",
    async run(conversation) {
      const key = await createKey();
      const { body } = await conversation.introspect(await boundToken(conversation, key));
      const { jkt } = (body.cnf as { jkt?: string } | undefined) ?? {};
      expect(jkt === key.jkt, `cnf.jkt is ${jkt}`);
    },
  },
  {
    id: "dpop-resource",
    title: "A bound token is accepted with a proof of its key",
    clause: "RFC 9449 §7.1",
    async run(conversation) {
      const key = await createKey();
      const { status } = await call(conversation, key, await boundToken(conversation, key));
      expect(status < 400, `the response is ${status}`);
    },
  },
  {
    id: "dpop-as-bearer",
    title: "A bound token is not accepted as a bearer token",
    clause: "RFC 9449 §7.2",
    async run(conversation) {
      const token = await boundToken(conversation, await createKey());
      expect((await conversation.call(token)).status === 401, "the bearer token is accepted");
    },
  },
  {
    id: "dpop-no-proof",
    title: "A bound token is not accepted without a proof",
    clause: "RFC 9449 §7.1",
    async run(conversation) {
      const token = await boundToken(conversation, await createKey());
      expect((await conversation.call(token, { scheme: "DPoP" })).status === 401, "the token is accepted");
    },
  },
  {
    id: "dpop-other-key",
    title: "A bound token is not accepted with a proof of another key",
    clause: "RFC 9449 §7.1, §4.3(12)",
    async run(conversation) {
      const token = await boundToken(conversation, await createKey());
      expect((await call(conversation, await createKey(), token)).status === 401, "the token is accepted");
    },
  },
  {
    id: "dpop-unbound",
    title: "A bearer token is not accepted with the scheme DPoP",
    clause: "RFC 9449 §7.1",
    async run(conversation) {
      requireDpop(conversation);
      const { status } = await call(conversation, await createKey(), await conversation.accessToken());
      expect(status === 401, `the response is ${status}`);
    },
  },
  ...INVALID.flatMap(([id, what, clause, variation]) => [
    {
      id: `dpop-token-${id}`,
      title: `The token endpoint refuses a proof ${what}`,
      clause: `RFC 9449 ${clause}`,
      async run(conversation: Conversation) {
        const reply = await request(conversation, await createKey(), variation());
        expectError(reply, "invalid_dpop_proof", "invalid_request", "use_dpop_nonce");
      },
    },
    ...resourceCheck(id, what, clause, variation),
  ]),
  ...INVALID_AT_RESOURCE.flatMap(([id, what, clause, variation]) =>
    resourceCheck(id, what, clause, variation),
  ),
  {
    id: "dpop-replay-token",
    title: "The token endpoint accepts a proof once",
    clause: "RFC 9449 §11.1",
    isRecommended: true,
    async run(conversation) {
      requireDpop(conversation);
      const proof = await sign(await createKey(), { htm: "POST", htu: conversation.endpoint("token") });
      const send = () => conversation.token({}, { headers: { dpop: proof } });
      needs((await send()).status === 200, "a nonce is required");
      expectError(await send());
    },
  },
  {
    id: "dpop-replay-resource",
    title: "The resource accepts a proof once",
    clause: "RFC 9449 §11.1",
    isRecommended: true,
    async run(conversation) {
      const key = await createKey();
      const token = await boundToken(conversation, key);
      const ath = createHash("sha256").update(token).digest("base64url");
      const proof = await sign(key, { htm: "GET", htu: conversation.resource, ath });
      const send = () => conversation.call(token, { scheme: "DPoP", headers: { dpop: proof } });
      needs((await send()).status < 400, "a nonce is required");
      expect((await send()).status === 401, "the proof is accepted twice");
    },
  },
  {
    id: "dpop-query",
    title: "The query of the URL is ignored in the comparison with htu",
    clause: "RFC 9449 §4.3(9)",
    async run(conversation) {
      const key = await createKey();
      const token = await boundToken(conversation, key);
      const ath = createHash("sha256").update(token).digest("base64url");
      const proof = await sign(key, { htm: "GET", htu: conversation.resource, ath });
      const headers = { authorization: `DPoP ${token}`, dpop: proof };
      const { status } = await conversation.send(`${conversation.resource}?limit=1`, { headers });
      expect(status < 400, `the response is ${status}`);
    },
  },
  {
    id: "dpop-code",
    title: "A code that is bound to a key is not redeemed with another one",
    clause: "RFC 9449 §10",
    async run(conversation) {
      requireDpop(conversation);
      const { code, verifier } = await conversation.code({ dpop_jkt: (await createKey()).jkt });
      const dpop = await sign(await createKey(), { htm: "POST", htu: conversation.endpoint("token") });
      expectError(await conversation.redeem(code, verifier, {}, { headers: { dpop } }));
    },
  },
];

function resourceCheck(id: string, what: string, clause: string, variation: () => Variation): Check[] {
  return [
    {
      id: `dpop-resource-${id}`,
      title: `The resource rejects a proof ${what}`,
      clause: `RFC 9449 ${clause}`,
      async run(conversation) {
        const key = await createKey();
        const token = await boundToken(conversation, key);
        const { status } = await call(conversation, key, token, variation());
        expect(status === 400 || status === 401, `the response is ${status}`);
      },
    },
  ];
}
