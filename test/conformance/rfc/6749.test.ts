import test from "ava";
import { allow, codeFor, shareApp } from "../../harness/clients/authorization.ts";
import {
  authorizeUrl,
  createApp,
  type Fields,
  REDIRECT_URI,
} from "../../harness/clients/authorization-request.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { type Answer, postAsClient, read, redeemCode, refresh } from "../../harness/clients/oauth.ts";

const { service, app, user } = await shareApp();

test("the address of no endpoint has a query or a fragment", async (t) => {
  const { body } = await read(fetch(`${service.url}/.well-known/oauth-authorization-server`));
  const addresses = Object.entries(body).filter(([name]) => name.endsWith("_endpoint"));
  t.true(addresses.length >= 5);
  for (const [name, address] of addresses) t.notRegex(String(address), /[?#]/, name);
});

const UNKNOWN: Fields = { foo: "x", bar: ["1", "2"], "": "x" };

test("the token endpoint ignores unknown and empty parameters", async (t) => {
  const empty = { ...UNKNOWN, scope: "", resource: "", client_id: "", client_secret: "", assertion: "" };
  const code = await codeFor(service, app, user);
  const redeemed = await redeemCode(service, app, code, { ...empty, refresh_token: "" });
  const token = String(redeemed.body.refresh_token);
  const grant_type = "client_credentials";
  const answers: Answer[] = [
    redeemed,
    await refresh(service, app, token, { ...empty, code: "", code_verifier: "", redirect_uri: "" }),
    await postAsClient(service, "token", app, { ...empty, grant_type, code: "", refresh_token: "" }),
  ];
  for (const { status, body, text } of answers) {
    t.is(status, 200, text);
    t.is(body.token_type, "Bearer");
  }
});

const OPTIONAL =
  `redirect_uri scope state resource response_mode request request_uri registration nonce prompt
  max_age id_token_hint login_hint display ui_locales claims dpop_jkt`.split(/\s+/);

test("an authorization request with empty optional parameters is like one without them", async (t) => {
  const empty = Object.fromEntries(OPTIONAL.map((name) => [name, ""]));
  const callback = await allow(service, user, authorizeUrl(service, app, { ...UNKNOWN, ...empty }));
  t.is(callback.origin + callback.pathname, REDIRECT_URI);
  t.deepEqual([...callback.searchParams.keys()].sort(), ["code", "iss"]);
});

test("an authorization request with an empty response_type or code_challenge is like one without it", async (t) => {
  const { browser } = await browserOf(service, user);
  for (const name of ["response_type", "code_challenge"]) {
    const answers: (string | null)[][] = [];
    for (const value of ["", undefined]) {
      const { url } = await browser.open(authorizeUrl(service, app, { [name]: value }));
      const { searchParams } = new URL(url);
      answers.push([searchParams.get("error"), searchParams.get("error_description")]);
    }
    t.is(answers[0]?.[0], "invalid_request");
    t.deepEqual(answers[0], answers[1]);
  }
});

test("no parameter of a response is repeated, even if the redirect URI contains it", async (t) => {
  const redirect_uri = `${REDIRECT_URI}?code=a&state=b&iss=c&error=d&tenant=e`;
  const { app: odd, user: owner } = await createApp(service, [redirect_uri]);
  const { browser } = await browserOf(service, owner);
  const failed = await browser.open(authorizeUrl(service, odd, { redirect_uri, scope: "unknown" }));
  const allowed = await allow(service, owner, authorizeUrl(service, odd, { redirect_uri }));
  for (const { searchParams } of [allowed, new URL(failed.url)]) {
    const names = [...searchParams.keys()];
    t.is(new Set(names).size, names.length);
    t.is(searchParams.get("state"), "a-state");
    t.is(searchParams.get("iss"), service.url);
    t.is(searchParams.get("tenant"), "e");
  }
  t.not(allowed.searchParams.get("code"), "a");
  t.is(new URL(failed.url).searchParams.get("error"), "invalid_scope");
});

const HOSTILE = 'x"é\\\n€';
const ALLOWED = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/;

const TOKEN_REQUESTS: Fields[] = [
  { grant_type: HOSTILE },
  { grant_type: "client_credentials", scope: HOSTILE },
  { grant_type: "client_credentials", resource: HOSTILE },
  { grant_type: "authorization_code", code: HOSTILE, redirect_uri: HOSTILE, code_verifier: HOSTILE },
  { grant_type: "refresh_token", refresh_token: HOSTILE },
  { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: HOSTILE },
  { grant_type: "client_credentials", client_assertion: HOSTILE, client_assertion_type: HOSTILE },
];

for (const fields of TOKEN_REQUESTS)
  test(`the error for the token request ${JSON.stringify(fields)} has allowed characters only`, async (t) => {
    const { status, headers, body } = await postAsClient(service, "token", app, fields);
    t.is(status, 400);
    t.regex(headers.get("content-type") ?? "", /^application\/json/);
    t.regex(String(body.error), ALLOWED);
    t.regex(String(body.error_description), ALLOWED);
    t.is(body.error_uri, `${service.url}/docs/errors/${body.error}`);
  });

const HOSTILE_NAMES =
  `response_type response_mode scope resource prompt code_challenge code_challenge_method request
  request_uri registration`.split(/\s+/);
const AUTHORIZATION_REQUESTS: Fields[] = [
  ...HOSTILE_NAMES.map((name) => ({ [name]: HOSTILE })),
  { scope: [HOSTILE, HOSTILE] },
  { scope: "openid", max_age: HOSTILE },
  { scope: "openid", id_token_hint: HOSTILE },
];

for (const fields of AUTHORIZATION_REQUESTS)
  test(`the error for the authorization request ${JSON.stringify(fields)} has allowed characters only`, async (t) => {
    const { browser } = await browserOf(service, user);
    const { searchParams } = new URL((await browser.open(authorizeUrl(service, app, fields))).url);
    t.regex(searchParams.get("error") ?? "", ALLOWED);
    t.regex(searchParams.get("error_description") ?? "-", ALLOWED);
    t.is(searchParams.get("error_uri"), null);
    t.is(searchParams.get("state"), "a-state");
  });
