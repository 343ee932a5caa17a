import test, { type ExecutionContext } from "ava";
import { type CryptoKey, exportJWK, importJWK, SignJWT } from "jose";
import * as oidc from "openid-client";
import { type Fields, formOf, pkce } from "../../harness/clients/authorization-request.ts";
import { createDpopKey } from "../../harness/clients/dpop.ts";
import { type Answer, read } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { deploy, REDIRECT_URI } from "./deployment.ts";
import type { Choices, FapiClient, Variation } from "./fapi-client.ts";
import { createFapiFlow, OTHER_REDIRECT_URI, toFapiClient } from "./fapi-client.ts";
import { areListed, createModules, reportModules } from "./modules.ts";
import { FAPI, MESSAGE_SIGNING } from "./plans.ts";

const deployment = await deploy();
const { issuer } = deployment;
const client = await toFapiClient(deployment, deployment.clients[0]);
const other = await toFapiClient(deployment, deployment.clients[1], "PS256");
const { body } = await read(fetch(`${issuer}/.well-known/oauth-authorization-server`));
const metadata = body as Record<string, string>;
// openid-client sends what is valid; what it would not send is sent without it.
const flow = createFapiFlow(deployment, metadata);
const { prepare, exchange, fetchLinks, codeOf, tokensOf, open } = flow;
const { push, redeem, refresh, call } = flow;

// With `plain_fapi`, `plain_oauth`, `private_key_jwt` and `dpop`.
const { tested, module } = createModules("fapi2-security-profile-final-");

const OPENID = "applies to OpenID Connect";
const NOT_APPLICABLE: Record<string, string> = {
  "ensure-authorization-request-without-nonce-success": OPENID,
  "ensure-authorization-request-with-64-char-nonce-success": OPENID,
  "ensure-authorization-request-with-long-nonce": OPENID,
  "ensure-other-scope-order-succeeds": OPENID,
  "ensure-different-nonce-inside-and-outside-request-object": OPENID,
  "test-claims-parameter-identity-claims": OPENID,
  "ensure-registered-redirect-uri": "not part of the `plain_fapi` plan",
};
const WARNINGS: Record<string, string> = {
  "attempt-reuse-authorization-code-after-one-second":
    "the code is refused, but the access token stays valid if the reuse is within 10 seconds",
};

const INVALID_REQUEST = /^invalid_request$/;
const INVALID_URI = /^invalid_request(_uri)?$/;
const INVALID_CLIENT = /^invalid_client$/;
const INVALID_GRANT = /^invalid_grant$/;
const INVALID_PROOF = /^invalid_(dpop_proof|request|grant)$/;
const INVALID_TYPE = /^(unsupported_response_type|invalid_request|unauthorized_client)$/;

const second = (offset: number) => Math.floor(Date.now() / 1000) + offset;

function refused(t: ExecutionContext, { status, body, text }: Answer, errors: RegExp): void {
  t.true(status === 400 || status === 401, text);
  t.regex(String(body.error), errors);
  t.false("access_token" in body || "request_uri" in body);
}

/** No code: the request ends on a page, or at the client with an error. */
function withoutCode(t: ExecutionContext, end: URL, errors: RegExp): void {
  t.is(end.searchParams.get("code"), null, end.href);
  if (end.origin !== issuer) t.regex(end.searchParams.get("error") ?? "", errors);
}

module("discovery-end-point-verification", async (t) => {
  t.is(metadata.issuer, issuer);
  areListed(t, metadata, {
    response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    token_endpoint_auth_methods_supported: ["private_key_jwt"],
    token_endpoint_auth_signing_alg_values_supported: ["PS256", "ES256"],
    dpop_signing_alg_values_supported: ["ES256"],
    code_challenge_methods_supported: ["S256"],
  });
  t.is(metadata.authorization_response_iss_parameter_supported as unknown, true);
  t.truthy(metadata.pushed_authorization_request_endpoint);
});

module("happy-flow", async (t) => {
  const authorized = await codeOf(client);
  t.true(authorized.end.href.startsWith(REDIRECT_URI));
  t.is(authorized.end.searchParams.get("iss"), issuer);
  const tokens = await exchange(authorized, authorized.end);
  t.is(tokens.token_type, "dpop");
  t.is(await fetchLinks(authorized, tokens.access_token), 200);

  const second = await codeOf(other, { parameters: { redirect_uri: OTHER_REDIRECT_URI } });
  t.true(second.end.href.startsWith(OTHER_REDIRECT_URI));
  // openid-client leaves out the query of the redirect URI.
  const fields = { redirect_uri: OTHER_REDIRECT_URI };
  const { status, text, body } = await redeem(other, second.code, second.verifier, { fields });
  t.is(status, 200, text);
  t.is(body.token_type, "DPoP");
  t.is(await call(other, body.access_token), 200);
});

module("user-rejects-authentication", async (t) => {
  const prepared = await prepare(client);
  const end = await open(client, prepared.requestUri, { button: "Cancel" });
  t.is(end.searchParams.get("iss"), issuer);
  const error = await t.throwsAsync(exchange(prepared, end));
  t.is((error as oidc.AuthorizationResponseError).error, "access_denied");
});

module("access-token-type-header-case-sensitivity", async (t) => {
  const { access_token } = await tokensOf(client);
  for (const scheme of ["dpop", "DPOP", "DPoP"])
    t.is(await call(client, access_token, { scheme }), 200, scheme);
});

const boundEarly = (choices: Choices): Choices => ({ ...choices, isBoundEarly: true });

const ACCEPTED: Record<string, () => Choices> = {
  // jose compares these with a clock that other modules don't advance.
  "check-dpop-proof-nbf-exp": () => {
    const now = Math.floor((performance.timeOrigin + performance.now()) / 1000);
    return boundEarly({ proof: { nbf: now - 5, exp: now + 300 } });
  },
  "ensure-dpopproof-with-iat-10seconds-before-succeeds": () => boundEarly({ proof: { iat: second(-10) } }),
  "ensure-dpopproof-with-iat-10seconds-after-succeeds": () => boundEarly({ proof: { iat: second(10) } }),
  "ensure-dpopproof-at-par-endpoint-binding-success": () => boundEarly({}),
  "ensure-dpop-auth-code-binding-success": () => boundEarly({ parameters: { dpop_jkt: client.dpop.jkt } }),
  "ensure-authorization-request-without-state-success": () => ({ parameters: { state: undefined } }),
  "ensure-authorization-request-with-long-state": () => ({ parameters: { state: "s".repeat(1024) } }),
  "par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted": () => ({
    assertion: { nbf: second(8) },
  }),
  "par-without-duplicate-parameters": () => ({}),
};
for (const [name, choices] of Object.entries(ACCEPTED))
  module(name, async (t) => {
    const authorized = await codeOf(client, choices());
    t.is(authorized.end.searchParams.get("state"), authorized.state ?? null);
    const tokens = await exchange(authorized, authorized.end);
    t.is(await fetchLinks(authorized, tokens.access_token), 200);
  });

module("ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt", async (t) => {
  const { code, verifier } = await codeOf(client, { isBoundEarly: true });
  const answer = await redeem(client, code, verifier, { dpop: await createDpopKey() });
  refused(t, answer, INVALID_PROOF);
});

module("ensure-token-endpoint-fails-with-mismatched-dpop-jkt", async (t) => {
  const { jkt } = await createDpopKey();
  const { code, verifier } = await codeOf(client, { parameters: { dpop_jkt: jkt } });
  refused(t, await redeem(client, code, verifier), INVALID_PROOF);
});

for (const [name, pushed] of [
  ["ensure-different-state-inside-and-outside-request-object", "inside"],
  ["state-only-outside-request-object-not-used", undefined],
] as const)
  module(name, async (t) => {
    const { requestUri } = await prepare(client, { parameters: { state: pushed } });
    const end = await open(client, requestUri, { extra: { state: "outside" } });
    if (end.searchParams.get("code")) t.is(end.searchParams.get("state"), pushed ?? null);
    else withoutCode(t, end, INVALID_REQUEST);
  });

// A pushed request that is refused: its parameters, and the error.
const REFUSED_PARAMETERS: Record<string, [fields: Fields, errors: RegExp]> = {
  "ensure-request-object-without-redirect-uri-fails": [{ redirect_uri: undefined }, INVALID_REQUEST],
  "ensure-redirect-uri-in-authorization-request": [{ redirect_uri: undefined }, INVALID_REQUEST],
  "ensure-response-type-code-idtoken-fails": [{ response_type: "code id_token" }, INVALID_TYPE],
  "ensure-response-type-token-fails": [{ response_type: "token" }, INVALID_TYPE],
  "par-authorization-request-containing-request_uri-form-param": [
    { request_uri: "urn:ietf:params:oauth:request_uri:x" },
    INVALID_REQUEST,
  ],
  "par-ensure-pkce-required": [
    { code_challenge: undefined, code_challenge_method: undefined },
    INVALID_REQUEST,
  ],
  "par-plain-pkce-rejected": [{ code_challenge_method: "plain" }, INVALID_REQUEST],
  "plain-fapi-tolerate-unregistered-redirect-uri": [
    { redirect_uri: `${REDIRECT_URI}/unregistered` },
    /^invalid_re(quest|direct_uri)$/,
  ],
};
for (const [name, [fields, errors]] of Object.entries(REFUSED_PARAMETERS))
  module(name, async (t) => refused(t, (await push(client, { fields })).answer, errors));

const REFUSED_AUDIENCES: Record<string, unknown> = {
  "par-test-array-as-audience-fails": [issuer],
  "par-test-par-endpoint-url-as-audience-fails": metadata.pushed_authorization_request_endpoint,
  "par-test-token-endpoint-url-as-audience-fails": metadata.token_endpoint,
};
for (const [name, aud] of Object.entries(REFUSED_AUDIENCES))
  module(name, async (t) => refused(t, (await push(client, { assertion: { aud } })).answer, INVALID_CLIENT));

module("par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails", async (t) => {
  const assertion = { iat: second(70), nbf: second(70), exp: second(130) };
  refused(t, (await push(client, { assertion })).answer, /^invalid_(client|request)$/);
});

module("ensure-mismatched-dpop-jkt-fails", async (t) => {
  const { jkt } = await createDpopKey();
  const { answer } = await push(client, { fields: { dpop_jkt: jkt }, proof: {} });
  refused(t, answer, /^invalid_(dpop_proof|request)$/);
});

const INVALID_VERIFIER = /^invalid_(grant|request)$/;
// A valid code that is redeemed wrongly: what the request has instead, and the error.
const REFUSED_REDEMPTIONS: Record<string, [variation: Variation, errors: RegExp, by?: FapiClient]> = {
  "ensure-client-id-in-token-endpoint": [
    { fields: { client_id: other.id } },
    /^invalid_(client|request|grant)$/,
  ],
  "ensure-holder-of-key-required": [{ proof: null }, INVALID_PROOF],
  "ensure-authorization-code-is-bound-to-client": [{}, INVALID_GRANT, other],
  "ensure-client-assertion-in-token-endpoint": [{ assertion: null }, /^invalid_(client|request)$/],
  "ensure-client-assertion-with-exp-is-5-minutes-in-past-fails": [
    { assertion: { exp: second(-300), iat: second(-360) } },
    INVALID_CLIENT,
  ],
  "ensure-client-assertion-with-wrong-aud-fails": [
    { assertion: { aud: "https://other.example.com" } },
    INVALID_CLIENT,
  ],
  "ensure-client-assertion-with-no-sub-fails": [{ assertion: { sub: undefined } }, INVALID_CLIENT],
  "ensure-pkce-code-verifier-required": [{ fields: { code_verifier: undefined } }, INVALID_VERIFIER],
  "incorrect-pkce-code-verifier-rejected": [{ fields: { code_verifier: "x".repeat(43) } }, INVALID_VERIFIER],
};
for (const [name, [variation, errors, by = client]] of Object.entries(REFUSED_REDEMPTIONS))
  module(name, async (t) => {
    const { code, verifier } = await codeOf(client);
    refused(t, await redeem(by, code, verifier, variation), errors);
  });

module("attempt-reuse-authorization-code-after-one-second", async (t) => {
  const { code, verifier, access_token } = await tokensOf(client);
  advanceClock(1000);
  refused(t, await redeem(client, code, verifier), INVALID_GRANT);
  t.is(await call(client, access_token), 200);
});

module("ensure-token-endpoint-fails-with-expired-auth-code", async (t) => {
  const { code, verifier } = await codeOf(client);
  advanceClock(62_000);
  refused(t, await redeem(client, code, verifier), INVALID_GRANT);
});

module("dpop-negative-tests", async (t) => {
  const { access_token: token } = await tokensOf(client);
  t.is(await call(client, token), 200);
  const invalid: Record<string, Parameters<typeof call>[2]> = {
    "a bearer token": { scheme: "Bearer", proof: null },
    "no proof": { proof: null },
    "another key": { key: await createDpopKey() },
    "no ath": { proof: { claims: { ath: undefined } } },
    "another ath": { proof: { claims: { ath: "x".repeat(43) } } },
    "another method": { proof: { claims: { htm: "POST" } } },
    "another URL": { proof: { claims: { htu: "https://other.example.com/v1/links" } } },
    "no jti": { proof: { claims: { jti: undefined } } },
    "no iat": { proof: { claims: { iat: undefined } } },
    "an old iat": { proof: { claims: { iat: second(-3600) } } },
    "another type": { proof: { header: { typ: "JWT" } } },
    "no key": { proof: { header: { jwk: undefined } } },
  };
  for (const [what, options] of Object.entries(invalid)) t.is(await call(client, token, options), 401, what);
});

module("refresh-token", async (t) => {
  const authorized = await tokensOf(client);
  const { config, DPoP, refresh_token: token } = authorized;
  const refreshed = await oidc.refreshTokenGrant(config, String(token), undefined, { DPoP });
  t.is(await fetchLinks(authorized, refreshed.access_token), 200);
  refused(t, await refresh(client, String(token), { proof: null }), INVALID_PROOF);
  const { refresh_token: foreign } = await tokensOf(other);
  refused(t, await refresh(client, String(foreign)), INVALID_GRANT);
});

module("par-ensure-reused-request-uri-prior-to-auth-completion-succeeds", async (t) => {
  const { requestUri } = await prepare(client);
  const browser = new TestBrowser(issuer);
  await browser.open(
    `${metadata.authorization_endpoint}?${formOf({ client_id: client.id, request_uri: requestUri })}`,
  );
  t.truthy((await open(client, requestUri, { browser })).searchParams.get("code"));
});

module("par-attempt-reuse-request_uri", async (t) => {
  const { requestUri } = await prepare(client);
  t.truthy((await open(client, requestUri)).searchParams.get("code"));
  withoutCode(t, await open(client, requestUri), INVALID_URI);
});

module("par-attempt-to-use-expired-request_uri", async (t) => {
  const { requestUri, answer } = await push(client);
  t.true(Number(answer.body.expires_in) >= 5 && Number(answer.body.expires_in) < 600);
  advanceClock((Number(answer.body.expires_in) + 1) * 1000);
  withoutCode(t, await open(client, requestUri), INVALID_URI);
});

module("par-attempt-to-use-request_uri-for-different-client", async (t) => {
  const { requestUri } = await prepare(client);
  withoutCode(t, await open(other, requestUri), /^invalid_request(_uri)?$|^invalid_client$/);
});

module("par-attempt-invalid-http-method", async (t) => {
  for (const method of ["GET", "PUT"]) {
    const { status } = await fetch(String(metadata.pushed_authorization_request_endpoint), { method });
    t.true([400, 404, 405].includes(status), `${method}: ${status}`);
  }
});

module("ensure-unsigned-authorization-request-without-using-par-fails", async (t) => {
  const { challenge } = await pkce();
  const extra = {
    request_uri: undefined,
    response_type: "code",
    redirect_uri: REDIRECT_URI,
    code_challenge: challenge,
    code_challenge_method: "S256",
  };
  withoutCode(t, await open(client, "", { extra }), INVALID_REQUEST);
});

module("ensure-signed-client-assertion-with-RS256-fails", async (t) => {
  const key = await importJWK(await exportJWK(other.privateKey), "RS256");
  const { answer } = await push(other, { signer: { alg: "RS256", privateKey: key as CryptoKey } });
  refused(t, answer, INVALID_CLIENT);
});

test("every module of the plan is a test, or is listed with the reason", (t) => {
  t.deepEqual([...tested, ...Object.keys(NOT_APPLICABLE)].toSorted(), FAPI.modules.toSorted());
  reportModules(t, FAPI, { "not applicable": NOT_APPLICABLE, "passed with a warning": WARNINGS });
});

// RFC 8414: without the metadata of signed requests (RFC 9101), a client can't know of them.
test("message signing does not apply: signed requests and responses are not supported", async (t) => {
  t.deepEqual(metadata.response_modes_supported as unknown, ["query"]);
  const signed = await new SignJWT({ client_id: client.id })
    .setProtectedHeader({ alg: client.alg })
    .sign(client.privateKey);
  refused(t, (await push(client, { fields: { request: signed } })).answer, /^request_not_supported$/);
  const { answer } = await push(client, { fields: { response_mode: "jwt" } });
  refused(t, answer, /^(unsupported_response_mode|invalid_request)$/);
  const reason = "signed request objects are not supported";
  const reasons = Object.fromEntries(MESSAGE_SIGNING.modules.map((name) => [name, reason]));
  reportModules(t, MESSAGE_SIGNING, { "not applicable": reasons });
});
