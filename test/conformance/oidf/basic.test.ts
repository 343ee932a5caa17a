import test from "ava";
import { decodeProtectedHeader, UnsecuredJWT } from "jose";
import { type Fields, formOf } from "../../harness/clients/authorization-request.ts";
import { read, redemptionOf } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { bearer, postForm } from "../../harness/service.ts";
import { deploy, REDIRECT_URI } from "./deployment.ts";
import { areListed, createModules, reportModules } from "./modules.ts";
import { BASIC, CONFIG } from "./plans.ts";
import { createRelyingParty } from "./relying-party.ts";

const deployment = await deploy();
const { metadata, authorize, redeem, requestTokens, verifyIdToken, succeed, userInfo } =
  await createRelyingParty(deployment);
const { issuer, clients } = deployment;

// Every browser in a module is a new one.
const { tested, module } = createModules();

const noScope = (scope: string) => `\`${scope}\` is not supported, so the suite skips the module`;
const NOT_APPLICABLE: Record<string, string> = {
  "oidcc-idtoken-unsigned": "requires dynamic registration; ID tokens are always signed",
  "oidcc-scope-profile": noScope("profile"),
  "oidcc-scope-email": noScope("email"),
  "oidcc-scope-address": noScope("address"),
  "oidcc-scope-phone": noScope("phone"),
  "oidcc-scope-all": "the scopes are not supported, so the suite skips the module",
  "oidcc-ensure-request-object-with-redirect-uri": "request objects are not supported",
};

module("oidcc-server", async (t) => {
  const { tokens, claims } = await succeed(t);
  t.is(claims.auth_time === undefined || typeof claims.auth_time === "number", true);
  t.true(Number(tokens.expires_in) > 0);
});

module("oidcc-response-type-missing", async (t) => {
  const { end, parameters } = await authorize({ response_type: undefined });
  t.is(end.origin + end.pathname, REDIRECT_URI);
  t.regex(end.searchParams.get("error") ?? "", /^(invalid_request|unsupported_response_type)$/);
  t.is(end.searchParams.get("state"), parameters.get("state"));
  t.is(end.searchParams.get("code"), null);
});

module("oidcc-idtoken-signature", async (t) => {
  const { tokens } = await succeed(t);
  const { alg, kid } = decodeProtectedHeader(String(tokens.id_token));
  const { body } = await read(fetch(metadata.jwks_uri));
  const matching = (body.keys as { kid: string; kty: string }[]).filter((key) => key.kid === kid);
  t.is(alg, "RS256");
  const types = matching.map(({ kty }) => kty);
  t.deepEqual(types, ["RSA"]);
});

const TOKEN_IN: Record<string, (token: string) => RequestInit> = {
  "oidcc-userinfo-get": (token) => ({ headers: bearer(token) }),
  "oidcc-userinfo-post-header": (token) => ({ method: "POST", headers: bearer(token) }),
  "oidcc-userinfo-post-body": (token) => ({ method: "POST", body: formOf({ access_token: token }) }),
};
for (const [name, requestWith] of Object.entries(TOKEN_IN))
  module(name, async (t) => {
    const { tokens, claims } = await succeed(t);
    const { status, headers, body } = await userInfo(requestWith(String(tokens.access_token)));
    t.is(status, 200);
    t.regex(headers.get("content-type") ?? "", /^application\/json/);
    t.is(body.sub, claims.sub);
  });

const SUCCEEDING: Record<string, Record<string, string | undefined>> = {
  "oidcc-ensure-request-without-nonce-succeeds-for-code-flow": { nonce: undefined },
  "oidcc-display-page": { display: "page" },
  "oidcc-display-popup": { display: "popup" },
  "oidcc-ensure-request-with-unknown-parameter-succeeds": { extra: "foobar" },
  "oidcc-login-hint": { login_hint: "buffy@suite.example.com" },
  "oidcc-ui-locales": { ui_locales: "se fr en" },
  "oidcc-claims-locales": { claims_locales: "se fr en" },
  "oidcc-ensure-request-with-acr-values-succeeds": { acr_values: "1 2" },
  "oidcc-claims-essential": { claims: JSON.stringify({ userinfo: { name: { essential: true } } }) },
  "oidcc-ensure-request-with-valid-pkce-succeeds": {},
};
for (const [name, parameters] of Object.entries(SUCCEEDING))
  module(name, async (t) => {
    const { shown } = await succeed(t, parameters);
    t.is(shown[0], "sign-in");
  });

module("oidcc-alternate-happy-flow", async (t) => {
  const { tokens } = await succeed(t, { scope: "offline_access openid", prompt: "consent" });
  t.regex(String(tokens.refresh_token), /^[\x20-\x7e]+$/);
});

// After so many ms, the second request asks for another sign-in.
const AGAIN: [name: string, ms: number, changes: Record<string, string>][] = [
  ["oidcc-prompt-login", 1000, { prompt: "login" }], // auth_time is in seconds
  ["oidcc-max-age-1", 2000, { max_age: "1" }],
];
for (const [name, ms, changes] of AGAIN)
  module(name, async (t) => {
    const first = await succeed(t);
    advanceClock(ms);
    const second = await succeed(t, changes, first);
    t.true(second.shown.includes("sign-in"), "a second sign-in");
    t.is(second.claims.sub, first.claims.sub);
    const authTime = Number(second.claims.auth_time);
    if (changes.max_age) t.true(Math.abs(Date.now() / 1000 - authTime) < 30);
    if (first.claims.auth_time && second.claims.auth_time) t.true(authTime > Number(first.claims.auth_time));
  });

module("oidcc-prompt-none-not-logged-in", async (t) => {
  const { end, shown, parameters } = await authorize({ prompt: "none" });
  t.deepEqual(shown, []);
  t.is(end.origin + end.pathname, REDIRECT_URI);
  t.regex(end.searchParams.get("error") ?? "", /^(login|interaction)_required$/);
  t.is(end.searchParams.get("state"), parameters.get("state"));
});

// The second request of a browser shows no page.
const SILENT: Record<string, [first: Fields, second: (tokens: Record<string, unknown>) => Fields]> = {
  "oidcc-prompt-none-logged-in": [{}, () => ({ prompt: "none" })],
  "oidcc-max-age-10000": [{ max_age: "15000" }, () => ({ max_age: "10000" })],
  "oidcc-id-token-hint": [{}, ({ id_token }) => ({ prompt: "none", id_token_hint: String(id_token) })],
};
for (const [name, [changes, again]] of Object.entries(SILENT))
  module(name, async (t) => {
    const first = await succeed(t, changes);
    const second = await succeed(t, again(first.tokens), first);
    t.deepEqual(second.shown, []);
    t.is(second.claims.sub, first.claims.sub);
    t.is(second.claims.auth_time, first.claims.auth_time);
    if (changes.max_age) t.is(typeof second.claims.auth_time, "number");
  });

for (const [name, ms] of Object.entries({ "oidcc-codereuse": 0, "oidcc-codereuse-30seconds": 30_000 }))
  module(name, async (t) => {
    const first = await succeed(t);
    advanceClock(ms);
    const { status, body } = await redeem(first);
    t.deepEqual([status, body.error], [400, "invalid_grant"]);
    if (ms) t.is((await userInfo({ headers: bearer(String(first.tokens.access_token)) })).status, 401);
  });

module("oidcc-ensure-registered-redirect-uri", async (t) => {
  const browser = new TestBrowser(issuer);
  const { end } = await authorize({ redirect_uri: "https://suite.example.com/another" }, { browser });
  t.is(end.origin, issuer, "no redirect");
  const page = await browser.open(end.href);
  t.is(page.status, 400);
  t.regex(page.text, /redirect_uri/);
});

module("oidcc-ensure-post-request-succeeds", async (t) => {
  await succeed(t, {}, { method: "POST" });
});

module("oidcc-server-client-secret-post", async (t) => {
  const { end, verifier, parameters } = await authorize();
  const [{ id: client_id, secret: client_secret }] = clients;
  const code = end.searchParams.get("code") ?? "";
  const redemption = { ...redemptionOf(code), redirect_uri: REDIRECT_URI, code_verifier: verifier };
  const fields = { ...redemption, client_id, client_secret };
  const { status, body } = await read(postForm(metadata.token_endpoint, fields));
  t.is(status, 200);
  await verifyIdToken(t, body.id_token, parameters.get("nonce"));
});

const REQUEST = { client_id: clients[0].id, redirect_uri: REDIRECT_URI, response_type: "code" };
const UNSUPPORTED: [name: string, parameter: "request" | "request_uri", value: string][] = [
  ["request-uri-unsigned", "request_uri", "https://suite.example.com/request.jwt"],
  ["unsigned-request-object", "request", new UnsecuredJWT(REQUEST).encode()],
];
for (const [name, parameter, value] of UNSUPPORTED)
  module(`oidcc-${name}-supported-correctly-or-rejected-as-unsupported`, async (t) => {
    const { end, shown } = await authorize({ [parameter]: value });
    t.deepEqual(shown, ["sign-in"]);
    t.is(end.origin + end.pathname, REDIRECT_URI);
    t.is(end.searchParams.get("error"), `${parameter}_not_supported`);
    t.is(metadata[`${parameter}_parameter_supported`] ?? parameter === "request_uri", false); // the defaults differ
  });

module("oidcc-refresh-token", async (t) => {
  const scope = "openid offline_access";
  const first = await succeed(t, { scope, prompt: "consent" });
  const refresh = (refresh_token: unknown) =>
    requestTokens({ grant_type: "refresh_token", refresh_token: String(refresh_token) });
  const { status, body } = await refresh(first.tokens.refresh_token);
  t.is(status, 200);
  t.not(body.access_token, first.tokens.access_token);
  t.is((await userInfo({ headers: bearer(String(body.access_token)) })).status, 200);
  if (body.id_token) {
    const refreshed = await verifyIdToken(t, body.id_token, first.parameters.get("nonce"));
    t.is(refreshed.sub, first.claims.sub);
    t.is(refreshed.auth_time, first.claims.auth_time);
  }
  const foreign = await authorize({ client_id: clients[1].id, scope, prompt: "consent" });
  const { body: others } = await redeem(foreign, clients[1]);
  const refused = await refresh(others.refresh_token);
  t.deepEqual([refused.status, refused.body.error], [400, "invalid_grant"]);
});

module("oidcc-discovery-endpoint-verification", async (t) => {
  const url = `${issuer}/.well-known/openid-configuration`;
  const { status, headers } = await read(fetch(url));
  t.is(status, 200);
  t.regex(headers.get("content-type") ?? "", /^application\/json/);
  t.is(metadata.issuer, issuer);
  areListed(t, metadata, {
    response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
    scopes_supported: ["openid"],
    claims_supported: ["sub", "iss", "auth_time"],
    code_challenge_methods_supported: ["S256"],
  });
  const urls = Object.entries(metadata).filter(([name]) => /_endpoint$|^jwks_uri$/.test(name));
  t.true(urls.length >= 6);
  // https everywhere but on a computer of one's own, where this test runs.
  for (const [name, value] of urls) t.true(String(value).startsWith(`${issuer}/`), name);
  const { body } = await read(fetch(metadata.jwks_uri));
  for (const key of body.keys as Record<string, unknown>[]) {
    const members = key.kty === "EC" ? ["kid", "crv", "x", "y"] : ["kid", "kty", "n", "e"];
    for (const name of members) t.is(typeof key[name], "string", name);
    for (const name of ["d", "p", "q", "dp", "dq", "qi", "k"]) t.false(name in key, name);
  }
});

test("every module of the plans is a test, or is listed with the reason why it doesn't apply", (t) => {
  const modules = [...BASIC.modules, ...CONFIG.modules];
  t.deepEqual([...tested, ...Object.keys(NOT_APPLICABLE)].toSorted(), modules.toSorted());
  for (const scope of ["profile", "email", "address", "phone"])
    t.false((metadata.scopes_supported as string[]).includes(scope));
  t.false((metadata.id_token_signing_alg_values_supported as string[]).includes("none"));
  for (const plan of [BASIC, CONFIG]) reportModules(t, plan, { "not applicable": NOT_APPLICABLE });
});
