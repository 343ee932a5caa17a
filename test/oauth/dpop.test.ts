import test from "ava";
import { exportJWK } from "jose";
import { codeFor, shareApp } from "../harness/clients/authorization.ts";
import { authorizeUrl, type Fields } from "../harness/clients/authorization-request.ts";
import type { Proof } from "../harness/clients/dpop.ts";
import { athOf, boundToken, createDpopKey, requestWithProof, signProof } from "../harness/clients/dpop.ts";
import { basic, outcomeOf, postAsClient, read, redemptionOf } from "../harness/clients/oauth.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { advanceClock, now } from "../harness/clock.ts";
import { purgeExpired } from "../harness/database/purge.ts";
import { postForm } from "../harness/service.ts";

const { service, app, user } = await shareApp();
const [key, otherKey] = await Promise.all([createDpopKey(), createDpopKey()]);
const privateJwk = await exportJWK(key.privateKey);

const TOKEN_URL = `${service.url}/oauth/token`;
const PAR_URL = `${service.url}/oauth/par`;
const API = new URL(`${service.url}/v1/links`);

async function callApi(token: unknown, signer = key, claims: Record<string, unknown> = {}) {
  const dpop = await signProof(signer, {
    claims: { htm: "GET", htu: API.href, ath: athOf(String(token)), ...claims },
  });
  return read(fetch(API, { headers: { authorization: `DPoP ${token}`, dpop } }));
}

const redeemWith = (code: string, proof: Proof = {}, signer = key) =>
  requestWithProof(service, app, signer, { fields: redemptionOf(code), proof });

const refreshWithProof = (refresh_token: unknown, signer = key) =>
  requestWithProof(service, app, signer, {
    fields: { grant_type: "refresh_token", refresh_token: String(refresh_token) },
  });

test("the server and its resources list the same algorithms", async (t) => {
  const { body } = await read(fetch(`${service.url}/.well-known/oauth-authorization-server`));
  t.deepEqual(body.dpop_signing_alg_values_supported, ["ES256", "Ed25519", "EdDSA"]);
  for (const path of ["", "/v1", "/mcp"]) {
    const resource = await read(fetch(`${service.url}/.well-known/oauth-protected-resource${path}`));
    t.deepEqual(resource.body.dpop_signing_alg_values_supported, body.dpop_signing_alg_values_supported);
    t.false(resource.body.dpop_bound_access_tokens_required);
  }
});

test("a token requested with a proof is bound to its key, and introspection says so", async (t) => {
  const { status, body } = await requestWithProof(service, app, key);
  t.is(status, 200);
  t.is(body.token_type, "DPoP");
  const token = String(body.access_token);
  const introspected = await postAsClient(service, "introspect", app, { token });
  t.like(introspected.body, { active: true, token_type: "DPoP", cnf: { jkt: key.jkt } });
  t.is((await callApi(body.access_token)).status, 200);
});

const proofForTokens = async (alg = "ES256", claims: object = {}) =>
  signProof(await createDpopKey(alg), { claims: { htm: "POST", htu: TOKEN_URL, ...claims } });

const INVALID = "invalid_dpop_proof";
const NONCE = "use_dpop_nonce";
const REFUSED: [what: string, proof: Proof | (() => Promise<string>), error: string][] = [
  ["the jwk of another key", { header: { jwk: otherKey.jwk } }, INVALID],
  ["a private key as the jwk", { header: { jwk: privateJwk } }, INVALID],
  ["the URL of another endpoint", { claims: { htu: PAR_URL } }, INVALID],
  ["the URL of another host", { claims: { htu: "https://evil.example/oauth/token" } }, INVALID],
  ["an iat six minutes ago", () => proofForTokens("ES256", { iat: now() - 360 }), NONCE],
  ["an iat in six minutes", () => proofForTokens("ES256", { iat: now() + 360 }), NONCE],
  ["an unknown nonce", { claims: { nonce: "A".repeat(43) } }, NONCE],
  ["two JWTs", async () => `${await proofForTokens()}, ${await proofForTokens()}`, INVALID],
  ["an RS256 signature", () => proofForTokens("RS256"), INVALID],
];

for (const [what, proof, error] of REFUSED)
  test(`a token request with a proof that has ${what} is rejected`, async (t) => {
    const fields = { grant_type: "client_credentials" };
    const answer =
      typeof proof === "function"
        ? read(postForm(TOKEN_URL, fields, { ...basic(app), dpop: await proof() }))
        : requestWithProof(service, app, key, { proof });
    t.is(await outcomeOf(answer), `400 ${error}`);
  });

test.serial("a proof from a clock that is ahead is accepted once, even after a purge", async (t) => {
  const dpop = await signProof(key, { claims: { htm: "POST", htu: TOKEN_URL, iat: now() + 290 } });
  const send = () => postForm(TOKEN_URL, { grant_type: "client_credentials" }, { ...basic(app), dpop });
  t.is((await send()).status, 200);
  for (let minute = 0; minute < 10; minute++) {
    await purgeExpired(service.storage);
    t.is((await send()).status, 400, `after ${minute} minutes`);
    advanceClock(60_000);
  }
});

test("a bound token in Proxy-Authorization counts as no token", async (t) => {
  const token = await boundToken(service, app, key);
  const send = async (header: string) => {
    const dpop = await signProof(key, { claims: { htm: "GET", htu: API.href, ath: athOf(token) } });
    const headers = ["host", API.host, header, `DPoP ${token}`, "dpop", dpop];
    return sendRaw(service.url, API.pathname, { headers });
  };
  t.is((await send("authorization")).status, 200);
  const { status, headers, text } = await send("proxy-authorization");
  t.is(status, 401);
  t.is(JSON.parse(text).code, "missing_token");
  t.regex(headers["www-authenticate"] ?? "", /DPoP/);
  t.false("proxy-authenticate" in headers);
});

test("a nonce of the token endpoint is valid at the resources, and the other way around", async (t) => {
  const issued = await requestWithProof(service, app, key);
  const nonce = issued.headers.get("dpop-nonce");
  t.regex(nonce ?? "", /^[\w-]{43}$/);
  const called = await callApi(issued.body.access_token, key, { nonce });
  t.is(called.status, 200, called.text);
  const offered = (await callApi(issued.body.access_token)).headers.get("dpop-nonce");
  const again = await requestWithProof(service, app, key, { proof: { claims: { nonce: offered } } });
  t.is(again.status, 200, again.text);
});

test("a code is redeemed with a proof; its refresh token may be used with another key", async (t) => {
  const { status, body } = await redeemWith(await codeFor(service, app, user));
  t.is(status, 200);
  t.is(body.token_type, "DPoP");
  t.is((await callApi(body.access_token)).status, 200);
  // RFC 9449 §5: a confidential client authenticates, so its refresh token is not bound to the key.
  const refreshed = await refreshWithProof(body.refresh_token, otherKey);
  t.is(refreshed.status, 200, refreshed.text);
  t.is((await callApi(refreshed.body.access_token, otherKey)).status, 200);
  t.is((await callApi(refreshed.body.access_token, key)).status, 401);
});

const usedId = crypto.randomUUID();
const WRONG_PROOFS: [what: string, bound: boolean, send: (code: string) => ReturnType<typeof read>][] = [
  ["no proof", true, (code) => postAsClient(service, "token", app, redemptionOf(code))],
  ["a proof of another key", true, (code) => redeemWith(code, {}, otherKey)],
  ...[true, false].flatMap((bound): typeof WRONG_PROOFS => [
    ["a used proof", bound, (code) => redeemWith(code, { claims: { jti: usedId } })],
    ["a proof for another URL", bound, (code) => redeemWith(code, { claims: { htu: PAR_URL } })],
    ["a wrongly signed proof", bound, (code) => redeemWith(code, { header: { jwk: otherKey.jwk } })],
    ["an expired nonce", bound, (code) => redeemWith(code, { claims: { nonce: "unknown" } })],
  ]),
];

for (const [what, bound, send] of WRONG_PROOFS)
  test(`${what} doesn't use up a code that is ${bound ? "" : "not "}bound to a key`, async (t) => {
    if (what === "a used proof")
      await requestWithProof(service, app, key, { proof: { claims: { jti: usedId } } });
    const code = await codeFor(service, app, user, bound ? { changes: { dpop_jkt: key.jkt } } : {});
    t.is((await send(code)).status, 400);
    const { status, text, body } = await redeemWith(code);
    t.is(status, 200, text);
    t.is((await callApi(body.access_token)).status, 200);
    t.is((await redeemWith(code)).body.error, "invalid_grant");
  });

function push(changes: Fields, dpop?: string) {
  const form = new URL(authorizeUrl(service, app, changes)).searchParams;
  return read(postForm(PAR_URL, form, { ...basic(app), ...(dpop && { dpop }) }));
}

const proofToPush = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) =>
  signProof(key, { claims: { htm: "POST", htu: PAR_URL, ...claims }, header });

test("a pushed request with an invalid proof is rejected", async (t) => {
  const proof = await proofToPush();
  t.is((await push({}, proof)).status, 201);
  for (const [what, invalid] of Object.entries({
    "a proof that was used": proof,
    "another key": await proofToPush({}, { jwk: otherKey.jwk }),
  })) {
    const outcome = await outcomeOf(push({}, invalid));
    t.regex(outcome, /^400 (invalid_dpop_proof|use_dpop_nonce|invalid_request)$/, what);
  }
});
