import test from "ava";
import { exportJWK, SignJWT } from "jose";
import * as oidc from "openid-client";
import { athOf, createDpopKey, type Proof, requestWithProof, signProof } from "../../harness/clients/dpop.ts";
import { discover, REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  authorizeUrl,
  basic,
  codeFor,
  createApp,
  type Fields,
  formOf,
  postAsClient,
  read,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const ORIGIN = "https://spa.example";
const service = await startTestService({ ALLOWED_ORIGINS: ORIGIN });
const { app, user } = await createApp(service);
const [key, otherKey] = await Promise.all([createDpopKey(), createDpopKey()]);
test.after.always(() => service.close());

const TOKEN_URL = `${service.url}/oauth/token`;
const PAR_URL = `${service.url}/oauth/par`;
const API = new URL(`${service.url}/v1/links`);
const now = () => Math.floor(Date.now() / 1000);

/** Calls the API with a proof of a key; returns the status. */
async function callApi(token: unknown, signer = key, claims: Record<string, unknown> = {}) {
  const dpop = await signProof(signer, {
    claims: { htm: "GET", htu: API.href, ath: athOf(String(token)), ...claims },
  });
  return read(fetch(API, { headers: { authorization: `DPoP ${token}`, dpop } }));
}

const redemptionOf = (code: string) => ({
  grant_type: "authorization_code",
  code,
  redirect_uri: REDIRECT_URI,
  code_verifier: VERIFIER,
});

const redeemWith = (code: string, proof: Proof, signer = key) =>
  requestWithProof(service, app, signer, { fields: redemptionOf(code), proof });

const redeemWithProof = (code: string, signer = key) => redeemWith(code, {}, signer);

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
  const { body: token } = await postAsClient(service, "introspect", app, {
    token: String(body.access_token),
  });
  t.true(token.active);
  t.is(token.token_type, "DPoP");
  t.deepEqual(token.cnf, { jkt: key.jkt });
  t.is((await callApi(body.access_token)).status, 200);
});

test("a token requested without a proof is a bearer token", async (t) => {
  const { body } = await postAsClient(service, "token", app, { grant_type: "client_credentials" });
  t.is(body.token_type, "Bearer");
});

const REFUSED: [what: string, proof: Parameters<typeof signProof>[1], error: string][] = [
  ["another typ", { header: { typ: "JWT" } }, "invalid_dpop_proof"],
  ["no jwk", { header: { jwk: undefined } }, "invalid_dpop_proof"],
  ["the jwk of another key", { header: { jwk: otherKey.jwk } }, "invalid_dpop_proof"],
  ["a private key as the jwk", { header: { jwk: await exportJWK(key.privateKey) } }, "invalid_dpop_proof"],
  ["another method", { claims: { htm: "GET" } }, "invalid_dpop_proof"],
  ["the URL of another endpoint", { claims: { htu: `${service.url}/oauth/par` } }, "invalid_dpop_proof"],
  ["the URL of another host", { claims: { htu: "https://evil.example/oauth/token" } }, "invalid_dpop_proof"],
  ["no jti", { claims: { jti: undefined } }, "invalid_dpop_proof"],
  ["no iat", { claims: { iat: undefined } }, "invalid_dpop_proof"],
  ["an iat six minutes ago", { claims: { iat: now() - 360 } }, "use_dpop_nonce"],
  ["an iat in six minutes", { claims: { iat: now() + 360 } }, "use_dpop_nonce"],
  ["an unknown nonce", { claims: { nonce: "A".repeat(43) } }, "use_dpop_nonce"],
];

for (const [what, proof, error] of REFUSED) {
  test(`a token request with a proof that has ${what} is rejected`, async (t) => {
    const { status, body } = await requestWithProof(service, app, key, { proof });
    t.is(status, 400);
    t.is(body.error, error);
  });
}

/** Signs a valid proof for the token endpoint. */
const proofForTokens = async (alg = "ES256") =>
  signProof(await createDpopKey(alg), { claims: { htm: "POST", htu: TOKEN_URL } });

async function unsignedProof() {
  const [header = "", payload] = (await proofForTokens()).split(".");
  const { typ, jwk } = JSON.parse(Buffer.from(header, "base64url").toString());
  return `${Buffer.from(JSON.stringify({ alg: "none", typ, jwk })).toString("base64url")}.${payload}.`;
}

async function symmetricProof() {
  const secret = Buffer.alloc(32, 7);
  const jwk = await exportJWK(secret);
  return new SignJWT({ jti: "a-jti", iat: now(), htm: "POST", htu: TOKEN_URL })
    .setProtectedHeader({ alg: "HS256", typ: "dpop+jwt", jwk })
    .sign(secret);
}

const UNUSABLE: [what: string, proof: () => Promise<string>][] = [
  ["a word", async () => "proof"],
  ["two JWTs", async () => `${await proofForTokens()}, ${await proofForTokens()}`],
  ["a JWT without a signature", unsignedProof],
  ["a JWT signed with a secret", symmetricProof],
  ["a JWT signed with ES384", () => proofForTokens("ES384")],
  ["a JWT signed with RS256", () => proofForTokens("RS256")],
  ["a JWT with a changed signature", async () => (await proofForTokens()).replace(/[^.]+$/, "A".repeat(86))],
];

for (const [what, proof] of UNUSABLE) {
  test(`a token request with ${what} as the proof is rejected`, async (t) => {
    const headers = { ...basic(app), dpop: await proof() };
    const reply = await read(postForm(TOKEN_URL, { grant_type: "client_credentials" }, headers));
    t.is(reply.status, 400);
    t.is(reply.body.error, "invalid_dpop_proof");
  });
}

test("two proofs in one token request are rejected", async (t) => {
  const claims = { htm: "POST", htu: TOKEN_URL };
  const headers = new Headers(basic(app));
  for (const proof of [await signProof(key, { claims }), await signProof(key, { claims })]) {
    headers.append("dpop", proof);
  }
  const body = formOf({ grant_type: "client_credentials" });
  const reply = await read(fetch(TOKEN_URL, { method: "POST", body, headers }));
  t.is(reply.status, 400);
  t.is(reply.body.error, "invalid_dpop_proof");
});

test("one of 20 concurrent token requests with the same proof succeeds", async (t) => {
  const dpop = await signProof(key, { claims: { htm: "POST", htu: TOKEN_URL } });
  const fields = formOf({ grant_type: "client_credentials" });
  const answers = await atOnce(20, () => read(postForm(TOKEN_URL, fields, { ...basic(app), dpop })));
  t.is(answers.filter(({ status }) => status === 200).length, 1);
  for (const { status, text } of answers) t.true(status === 200 || status === 400, text);
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

test("a client with a wrong clock gets a token with the nonce that it is offered", async (t) => {
  const claims = { iat: now() - 86_400 };
  const refused = await requestWithProof(service, app, key, { proof: { claims } });
  t.is(refused.body.error, "use_dpop_nonce");
  const nonce = refused.headers.get("dpop-nonce");
  const answer = await requestWithProof(service, app, key, { proof: { claims: { ...claims, nonce } } });
  t.is(answer.status, 200, answer.text);
});

test("a code is redeemed with a proof; its refresh token may be used with another key", async (t) => {
  const { status, body } = await redeemWithProof(await codeFor(service, app, user));
  t.is(status, 200);
  t.is(body.token_type, "DPoP");
  t.is((await callApi(body.access_token)).status, 200);
  // RFC 9449 §5: a confidential client authenticates, so its refresh token is not bound to the key.
  const refreshed = await refreshWithProof(body.refresh_token, otherKey);
  t.is(refreshed.status, 200, refreshed.text);
  t.is((await callApi(refreshed.body.access_token, otherKey)).status, 200);
  t.is((await callApi(refreshed.body.access_token, key)).status, 401);
});

test("revoking a bound token takes effect with the next request", async (t) => {
  const { body } = await requestWithProof(service, app, key);
  const token = String(body.access_token);
  t.is((await callApi(token)).status, 200);
  t.is((await postAsClient(service, "revoke", app, { token })).status, 200);
  t.is((await callApi(token)).status, 401);
});

test("an authorization request may bind its code to a key", async (t) => {
  const changes = { dpop_jkt: key.jkt };
  const code = await codeFor(service, app, user, { changes });
  t.is((await redeemWithProof(code)).status, 200);
  const other = await codeFor(service, app, user, { changes });
  t.is((await redeemWithProof(other, otherKey)).body.error, "invalid_grant");
  const bare = await codeFor(service, app, user, { changes });
  const { body } = await postAsClient(service, "token", app, redemptionOf(bare));
  t.is(body.error, "invalid_grant");
});

const usedId = crypto.randomUUID();
const WRONG_PROOFS: [what: string, bound: boolean, send: (code: string) => ReturnType<typeof read>][] = [
  ["no proof", true, (code) => postAsClient(service, "token", app, redemptionOf(code))],
  ["a proof of another key", true, (code) => redeemWithProof(code, otherKey)],
  ...[true, false].flatMap((bound): typeof WRONG_PROOFS => [
    ["a used proof", bound, (code) => redeemWith(code, { claims: { jti: usedId } })],
    ["a proof for another URL", bound, (code) => redeemWith(code, { claims: { htu: PAR_URL } })],
    ["a wrongly signed proof", bound, (code) => redeemWith(code, { header: { jwk: otherKey.jwk } })],
    ["an expired nonce", bound, (code) => redeemWith(code, { claims: { nonce: "unknown" } })],
  ]),
];

for (const [what, bound, send] of WRONG_PROOFS) {
  test(`${what} doesn't use up a code that is ${bound ? "" : "not "}bound to a key`, async (t) => {
    if (what === "a used proof")
      await requestWithProof(service, app, key, { proof: { claims: { jti: usedId } } });
    const code = await codeFor(service, app, user, bound ? { changes: { dpop_jkt: key.jkt } } : {});
    t.is((await send(code)).status, 400);
    const { status, text, body } = await redeemWithProof(code);
    t.is(status, 200, text);
    t.is((await callApi(body.access_token)).status, 200);
    t.is((await redeemWithProof(code)).body.error, "invalid_grant");
  });
}

test("a pushed request with a proof binds the code to its key", async (t) => {
  const endpoint = `${service.url}/oauth/par`;
  const dpop = await signProof(key, { claims: { htm: "POST", htu: endpoint } });
  const form = new URL(authorizeUrl(service, app)).searchParams;
  const pushed = await read(postForm(endpoint, form, { ...basic(app), dpop }));
  t.is(pushed.status, 201, pushed.text);
  const query = new URLSearchParams({
    client_id: app.clientId,
    request_uri: String(pushed.body.request_uri),
  });
  const callback = await allow(service, user, `${service.url}/oauth/authorize?${query}`);
  const code = String(callback.searchParams.get("code"));
  t.is((await redeemWithProof(code, otherKey)).body.error, "invalid_grant");
});

/** Pushes an authorization request, with a proof if there is one. */
function push(changes: Fields, dpop?: string) {
  const form = new URL(authorizeUrl(service, app, changes)).searchParams;
  return read(postForm(PAR_URL, form, { ...basic(app), ...(dpop && { dpop }) }));
}

const proofToPush = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) =>
  signProof(key, { claims: { htm: "POST", htu: PAR_URL, ...claims }, header });

test("a pushed request may name the key of its code", async (t) => {
  for (const [signer, status] of [
    [otherKey, 400],
    [key, 200],
  ] as const) {
    const { body } = await push({ dpop_jkt: key.jkt });
    const query = formOf({ client_id: app.clientId, request_uri: String(body.request_uri) });
    const callback = await allow(service, user, `${service.url}/oauth/authorize?${query}`);
    t.is((await redeemWithProof(String(callback.searchParams.get("code")), signer)).status, status);
  }
});

test("a pushed request with a proof of another key than it names is rejected", async (t) => {
  const { status, body } = await push({ dpop_jkt: otherKey.jkt }, await proofToPush());
  t.is(status, 400);
  t.is(body.error, "invalid_request");
  t.is((await push({ dpop_jkt: key.jkt }, await proofToPush())).status, 201);
});

test("a pushed request with an invalid proof is rejected", async (t) => {
  for (const [claims, header] of [
    [{ htu: TOKEN_URL }],
    [{ htm: "GET" }],
    [{ jti: undefined }],
    [{ iat: undefined }],
    [{ iat: now() - 360 }],
    [{}, { typ: "JWT" }],
    [{}, { jwk: otherKey.jwk }],
  ]) {
    const { status, body } = await push({}, await proofToPush(claims, header));
    t.is(status, 400, JSON.stringify([claims, header]));
    t.regex(String(body.error), /^(invalid_dpop_proof|use_dpop_nonce)$/);
  }
  const proof = await proofToPush();
  t.is((await push({}, proof)).status, 201);
  t.is((await push({}, proof)).status, 400, "a proof that was used");
});

test("browsers of allowed origins may send proofs and read nonces", async (t) => {
  const preflight = await fetch(TOKEN_URL, {
    method: "OPTIONS",
    headers: {
      origin: ORIGIN,
      "access-control-request-method": "POST",
      "access-control-request-headers": "dpop",
    },
  });
  t.is(preflight.headers.get("access-control-allow-headers"), "dpop");
  const dpop = await signProof(key, { claims: { htm: "POST", htu: TOKEN_URL } });
  const fields = { grant_type: "client_credentials" };
  const { headers } = await postForm(TOKEN_URL, fields, { ...basic(app), origin: ORIGIN, dpop });
  t.regex(headers.get("access-control-expose-headers") ?? "", /DPoP-Nonce/);
});

for (const alg of ["ES256", "Ed25519"]) {
  test(`openid-client uses DPoP with ${alg}: client credentials, code, refresh, calls, revocation`, async (t) => {
    const config = await discover(service, app);
    const DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair(alg));
    const own = await oidc.clientCredentialsGrant(config, { scope: "links:read" }, { DPoP });
    t.is(own.token_type, "dpop");
    const call = (token: string) =>
      oidc.fetchProtectedResource(config, token, API, "GET", undefined, undefined, { DPoP });
    for (let round = 0; round < 3; round++) t.is((await call(own.access_token)).status, 200);

    const verifier = oidc.randomPKCECodeVerifier();
    const url = await oidc.buildAuthorizationUrlWithPAR(
      config,
      {
        redirect_uri: REDIRECT_URI,
        scope: "links:read",
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      },
      { DPoP },
    );
    const callback = await allow(service, user, url.href);
    const tokens = await oidc.authorizationCodeGrant(
      config,
      callback,
      { pkceCodeVerifier: verifier },
      undefined,
      { DPoP },
    );
    t.is((await call(tokens.access_token)).status, 200);
    const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token as string, undefined, {
      DPoP,
    });
    t.is(refreshed.token_type, "dpop");
    t.is((await call(refreshed.access_token)).status, 200);
    await oidc.tokenRevocation(config, refreshed.access_token);
    await t.throwsAsync(call(refreshed.access_token), { instanceOf: oidc.WWWAuthenticateChallengeError });
  });
}
