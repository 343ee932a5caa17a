import { setTimeout as sleep } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { type CryptoKey, exportJWK, importJWK, SignJWT } from "jose";
import * as oidc from "openid-client";
import { createDpopKey } from "../../harness/clients/dpop.ts";
import { type Answer, formOf, pkce, read } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { reportTable } from "../report.ts";
import { deploy, REDIRECT_URI } from "./deployment.ts";
import { type Choices, createFapiFlow, OTHER_REDIRECT_URI, toFapiClient } from "./fapi-client.ts";
import { FAPI, MESSAGE_SIGNING } from "./plans.ts";

export const stage = "processes";

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
test.after.always(() => deployment.stop());

const PREFIX = "fapi2-security-profile-final-";
const tested = new Set<string>();

/** A module of the suite, with `plain_fapi`, `plain_oauth`, `private_key_jwt` and `dpop`. */
function module(name: string, run: (t: ExecutionContext) => Promise<void>): void {
  tested.add(name);
  test(PREFIX + name, run);
}

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

const RESULTS = [
  ["not applicable", NOT_APPLICABLE],
  ["passed with a warning", WARNINGS],
] as const;

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
  const lists = (name: string, ...values: string[]) => {
    const listed = metadata[name] as unknown as string[];
    t.true(
      values.every((value) => listed.includes(value)),
      `${name}: ${listed}`,
    );
  };
  t.is(metadata.issuer, issuer);
  lists("response_types_supported", "code");
  lists("grant_types_supported", "authorization_code", "refresh_token");
  lists("token_endpoint_auth_methods_supported", "private_key_jwt");
  lists("token_endpoint_auth_signing_alg_values_supported", "PS256", "ES256");
  lists("dpop_signing_alg_values_supported", "ES256");
  lists("code_challenge_methods_supported", "S256");
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

module("ensure-authorization-request-without-state-success", async (t) => {
  const authorized = await codeOf(client, { parameters: { state: undefined } });
  t.is(authorized.end.searchParams.get("state"), null);
  t.truthy((await exchange(authorized, authorized.end)).access_token);
});

module("access-token-type-header-case-sensitivity", async (t) => {
  const { access_token } = await tokensOf(client);
  for (const scheme of ["dpop", "DPOP", "DPoP"])
    t.is(await call(client, access_token, { scheme }), 200, scheme);
});

const second = (offset: number) => Math.floor(Date.now() / 1000) + offset;
const ACCEPTED_PROOFS: Record<string, () => Record<string, number>> = {
  "check-dpop-proof-nbf-exp": () => ({ nbf: second(-5), exp: second(300) }),
  "ensure-dpopproof-with-iat-10seconds-before-succeeds": () => ({ iat: second(-10) }),
  "ensure-dpopproof-with-iat-10seconds-after-succeeds": () => ({ iat: second(10) }),
};
for (const [name, claims] of Object.entries(ACCEPTED_PROOFS)) {
  module(name, async (t) => {
    const authorized = await codeOf(client, { proof: claims(), isBoundEarly: true });
    const tokens = await exchange(authorized, authorized.end);
    t.is(await fetchLinks(authorized, tokens.access_token), 200);
  });
}

module("ensure-mismatched-dpop-jkt-fails", async (t) => {
  const { jkt } = await createDpopKey();
  const { answer } = await push(client, { fields: { dpop_jkt: jkt }, proof: {} });
  refused(t, answer, /^invalid_(dpop_proof|request)$/);
});

module("ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt", async (t) => {
  const { code, verifier } = await codeOf(client, { isBoundEarly: true });
  refused(
    t,
    await redeem(client, code, verifier, { dpop: await createDpopKey() }),
    /^invalid_(grant|dpop_proof|request)$/,
  );
});

module("ensure-token-endpoint-fails-with-mismatched-dpop-jkt", async (t) => {
  const { jkt } = await createDpopKey();
  const { code, verifier } = await codeOf(client, { parameters: { dpop_jkt: jkt } });
  refused(t, await redeem(client, code, verifier), /^invalid_(grant|dpop_proof|request)$/);
});

const BOUND_EARLY: Record<string, Choices> = {
  "ensure-dpopproof-at-par-endpoint-binding-success": { isBoundEarly: true },
  "ensure-dpop-auth-code-binding-success": {
    isBoundEarly: true,
    parameters: { dpop_jkt: client.dpop.jkt },
  },
};
for (const [name, choices] of Object.entries(BOUND_EARLY)) {
  module(name, async (t) => {
    const authorized = await codeOf(client, choices);
    t.truthy((await exchange(authorized, authorized.end)).access_token);
  });
}

for (const [name, pushed] of [
  ["ensure-different-state-inside-and-outside-request-object", "inside"],
  ["state-only-outside-request-object-not-used", undefined],
] as const) {
  module(name, async (t) => {
    const { requestUri } = await prepare(client, { parameters: { state: pushed } });
    const end = await open(client, requestUri, { extra: { state: "outside" } });
    if (end.searchParams.get("code")) t.is(end.searchParams.get("state"), pushed ?? null);
    else withoutCode(t, end, /^invalid_request$/);
  });
}

module("ensure-authorization-request-with-long-state", async (t) => {
  const state = "s".repeat(1024);
  const authorized = await codeOf(client, { parameters: { state } });
  t.is(authorized.end.searchParams.get("state"), state);
  t.truthy((await exchange(authorized, authorized.end)).access_token);
});

for (const name of [
  "ensure-request-object-without-redirect-uri-fails",
  "ensure-redirect-uri-in-authorization-request",
]) {
  module(name, async (t) => {
    refused(t, (await push(client, { fields: { redirect_uri: undefined } })).answer, /^invalid_request$/);
  });
}

for (const response_type of ["code id_token", "token"]) {
  module(
    `ensure-response-type-${response_type.replace("code id_token", "code-idtoken")}-fails`,
    async (t) => {
      const { answer } = await push(client, { fields: { response_type } });
      refused(t, answer, /^(unsupported_response_type|invalid_request|unauthorized_client)$/);
    },
  );
}

module("ensure-client-id-in-token-endpoint", async (t) => {
  const { code, verifier } = await codeOf(client);
  const answer = await redeem(client, code, verifier, { fields: { client_id: other.id } });
  refused(t, answer, /^invalid_(client|request|grant)$/);
});

module("ensure-holder-of-key-required", async (t) => {
  const { code, verifier } = await codeOf(client);
  refused(t, await redeem(client, code, verifier, { proof: null }), /^invalid_(dpop_proof|request|grant)$/);
});

module("ensure-authorization-code-is-bound-to-client", async (t) => {
  const { code, verifier } = await codeOf(client);
  refused(t, await redeem(other, code, verifier), /^invalid_grant$/);
});

module("attempt-reuse-authorization-code-after-one-second", async (t) => {
  const { code, verifier, access_token } = await tokensOf(client);
  await sleep(1000); // as the suite does
  refused(t, await redeem(client, code, verifier), /^invalid_grant$/);
  t.is(await call(client, access_token), 200);
});

module("ensure-token-endpoint-fails-with-expired-auth-code", async (t) => {
  const { code, verifier } = await codeOf(client);
  await sleep(62_000); // as the suite does
  refused(t, await redeem(client, code, verifier), /^invalid_grant$/);
});

module("ensure-client-assertion-in-token-endpoint", async (t) => {
  const { code, verifier } = await codeOf(client);
  refused(t, await redeem(client, code, verifier, { assertion: null }), /^invalid_(client|request)$/);
});

const REFUSED_ASSERTIONS: Record<string, Record<string, unknown>> = {
  "ensure-client-assertion-with-exp-is-5-minutes-in-past-fails": { exp: second(-300), iat: second(-360) },
  "ensure-client-assertion-with-wrong-aud-fails": { aud: "https://other.example.com" },
  "ensure-client-assertion-with-no-sub-fails": { sub: undefined },
};
for (const [name, assertion] of Object.entries(REFUSED_ASSERTIONS)) {
  module(name, async (t) => {
    const { code, verifier } = await codeOf(client);
    refused(t, await redeem(client, code, verifier, { assertion }), /^invalid_client$/);
  });
}

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
  refused(t, await refresh(client, String(token), { proof: null }), /^invalid_(dpop_proof|request|grant)$/);
  const { refresh_token: foreign } = await tokensOf(other);
  refused(t, await refresh(client, String(foreign)), /^invalid_grant$/);
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
  withoutCode(t, await open(client, requestUri), /^invalid_request(_uri)?$/);
});

module("par-attempt-to-use-expired-request_uri", async (t) => {
  const { requestUri, answer } = await push(client);
  t.true(Number(answer.body.expires_in) >= 5 && Number(answer.body.expires_in) < 600);
  await sleep((Number(answer.body.expires_in) + 1) * 1000); // as the suite does
  withoutCode(t, await open(client, requestUri), /^invalid_request(_uri)?$/);
});

module("par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted", async (t) => {
  t.truthy((await prepare(client, { assertion: { nbf: second(8) } })).requestUri);
});

module("par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails", async (t) => {
  const { answer } = await push(client, {
    assertion: { iat: second(70), nbf: second(70), exp: second(130) },
  });
  refused(t, answer, /^invalid_(client|request)$/);
});

module("par-attempt-to-use-request_uri-for-different-client", async (t) => {
  const { requestUri } = await prepare(client);
  withoutCode(t, await open(other, requestUri), /^invalid_request(_uri)?$|^invalid_client$/);
});

module("par-authorization-request-containing-request_uri-form-param", async (t) => {
  const { answer } = await push(client, { fields: { request_uri: "urn:ietf:params:oauth:request_uri:x" } });
  refused(t, answer, /^invalid_request$/);
});

module("par-attempt-invalid-http-method", async (t) => {
  for (const method of ["GET", "PUT"]) {
    const { status } = await fetch(String(metadata.pushed_authorization_request_endpoint), { method });
    t.true([400, 404, 405].includes(status), `${method}: ${status}`);
  }
});

module("par-ensure-pkce-required", async (t) => {
  const { answer } = await push(client, {
    fields: { code_challenge: undefined, code_challenge_method: undefined },
  });
  refused(t, answer, /^invalid_request$/);
});

module("par-plain-pkce-rejected", async (t) => {
  const { answer } = await push(client, { fields: { code_challenge_method: "plain" } });
  refused(t, answer, /^invalid_request$/);
});

for (const [name, code_verifier] of [
  ["ensure-pkce-code-verifier-required", undefined],
  ["incorrect-pkce-code-verifier-rejected", "x".repeat(43)],
] as const) {
  module(name, async (t) => {
    const { code, verifier } = await codeOf(client);
    refused(
      t,
      await redeem(client, code, verifier, { fields: { code_verifier } }),
      /^invalid_(grant|request)$/,
    );
  });
}

module("par-without-duplicate-parameters", async (t) => {
  t.truthy((await tokensOf(client)).access_token);
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
  withoutCode(t, await open(client, "", { extra }), /^invalid_request$/);
});

module("plain-fapi-tolerate-unregistered-redirect-uri", async (t) => {
  const { answer } = await push(client, { fields: { redirect_uri: `${REDIRECT_URI}/unregistered` } });
  refused(t, answer, /^invalid_re(quest|direct_uri)$/);
});

module("ensure-signed-client-assertion-with-RS256-fails", async (t) => {
  const key = await importJWK(await exportJWK(other.privateKey), "RS256");
  const { answer } = await push(other, { signer: { alg: "RS256", privateKey: key as CryptoKey } });
  refused(t, answer, /^invalid_client$/);
});

const REFUSED_AUDIENCES: Record<string, string | string[] | undefined> = {
  "par-test-array-as-audience-fails": [issuer],
  "par-test-par-endpoint-url-as-audience-fails": metadata.pushed_authorization_request_endpoint,
  "par-test-token-endpoint-url-as-audience-fails": metadata.token_endpoint,
};
for (const [name, aud] of Object.entries(REFUSED_AUDIENCES)) {
  module(name, async (t) =>
    refused(t, (await push(client, { assertion: { aud } })).answer, /^invalid_client$/),
  );
}

test("every module of the plan is a test, or is listed with the reason", (t) => {
  t.deepEqual([...tested, ...Object.keys(NOT_APPLICABLE)].toSorted(), FAPI.modules.toSorted());
  const rows = FAPI.modules.map((name) => {
    const [result] = RESULTS.find(([, names]) => name in names) ?? ["passed"];
    return [`\`${name}\``, result, NOT_APPLICABLE[name] ?? WARNINGS[name] ?? ""];
  });
  reportTable(t, FAPI.name, [["Module", "Result", "Reason"], ...rows]);
});

// RFC 8414: without the metadata of signed requests (RFC 9101), a client can't know of them.
test("message signing does not apply: signed requests and responses are not supported", async (t) => {
  t.deepEqual(metadata.response_modes_supported as unknown, ["query"]);
  const signed = await new SignJWT({ client_id: client.id })
    .setProtectedHeader({ alg: client.alg })
    .sign(client.privateKey);
  refused(t, (await push(client, { fields: { request: signed } })).answer, /^request_not_supported$/);
  refused(
    t,
    (await push(client, { fields: { response_mode: "jwt" } })).answer,
    /^(unsupported_response_mode|invalid_request)$/,
  );
  const reason = "signed request objects are not supported";
  const rows = MESSAGE_SIGNING.modules.map((name) => [`\`${name}\``, "not applicable", reason]);
  reportTable(t, MESSAGE_SIGNING.name, [["Module", "Result", "Reason"], ...rows]);
});
