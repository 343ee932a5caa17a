import test from "ava";
import { allow, shareApp } from "../harness/clients/authorization.ts";
import {
  authorizeUrl,
  createApp,
  type Fields,
  formOf,
  REDIRECT_URI,
} from "../harness/clients/authorization-request.ts";
import { browserOf } from "../harness/clients/dashboard.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";

const { service, app, user } = await shareApp();
// Another user, because consent is remembered.
const { user: approving } = await createApp(service);
const { browser: notFollowing } = await browserOf(service, user);
notFollowing.follows = false;

const state = "a state with ümlaut & <b>";

async function redirectFor(changes: Fields): Promise<URL | undefined> {
  const { headers } = await notFollowing.open(authorizeUrl(service, app, { state, ...changes }));
  const location = headers.get("location");
  return location ? new URL(location, service.url) : undefined;
}

const INVALID_REQUESTS: [what: string, changes: Fields, error: string][] = [
  ["no response_type", { response_type: undefined }, "invalid_request"],
  ["an unknown response_type", { response_type: "bogus" }, "unsupported_response_type"],
  ["the implicit response type", { response_type: "token" }, "unsupported_response_type"],
  ["the response type code id_token", { response_type: "code id_token" }, "unsupported_response_type"],
  ["only unknown scopes", { scope: "admin:all everything" }, "invalid_scope"],
  ["only offline_access", { scope: "offline_access" }, "invalid_scope"],
  ["an invalid character in a scope", { scope: "links:read\u0000" }, "invalid_scope"],
  ["a backslash in a scope", { scope: "links:read links\\write" }, "invalid_scope"],
  ["a non-ASCII character in a scope", { scope: "links:read žlinks" }, "invalid_scope"],
  ["an unknown prompt", { prompt: "create" }, "invalid_request"],
  ["prompt=none and another prompt", { prompt: "none login" }, "invalid_request"],
  ["an unknown resource", { resource: "https://evil.example/" }, "invalid_target"],
  ["a registration parameter", { registration: "{}" }, "registration_not_supported"],
  // They restrict who may sign in, so a client must not be led to believe that they took effect.
  ["max_age without openid", { max_age: "60" }, "invalid_request"],
  ["id_token_hint without openid", { id_token_hint: "x" }, "invalid_request"],
  ["the response mode fragment", { response_mode: "fragment" }, "unsupported_response_mode"],
  ["the response mode form_post", { response_mode: "form_post" }, "unsupported_response_mode"],
  ["an unknown response mode", { response_mode: "bogus" }, "unsupported_response_mode"],
  ...Object.entries({
    "no challenge": { code_challenge: undefined, code_challenge_method: undefined },
    "a method without a challenge": { code_challenge: undefined },
    "the method plain": { code_challenge_method: "plain" },
    "a challenge without a method": { code_challenge_method: undefined },
    "a lower-case method": { code_challenge_method: "s256" },
    "a challenge that is too short": { code_challenge: "x".repeat(42) },
    "a challenge that is too long": { code_challenge: "x".repeat(129) },
    "a challenge with invalid characters": { code_challenge: `${"x".repeat(42)}=` },
  }).map(([what, changes]): [string, Fields, string] => [what, changes, "invalid_request"]),
];

for (const [what, changes, error] of INVALID_REQUESTS)
  test(`a request with ${what} redirects with ${error}, state and iss`, async (t) => {
    const url = await redirectFor(changes);
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.is(url?.searchParams.get("error"), error);
    if (what.includes("response_type")) t.regex(String(url), /error_description=[^&]*response_type/);
    t.is(url?.searchParams.get("state"), state);
    t.is(url?.searchParams.get("iss"), service.url);
    t.is(url?.searchParams.get("code"), null);
    t.is(url?.hash, "");
  });

const SINGLE =
  `response_type response_mode scope state nonce prompt code_challenge code_challenge_method max_age id_token_hint
  login_hint ui_locales acr_values claims_locales display request request_uri`.split(/\s+/);
for (const name of SINGLE)
  test(`a repeated ${name} is rejected with invalid_request`, async (t) => {
    const url = await redirectFor({ [name]: ["code", "code"] });
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.is(url?.searchParams.get("error"), "invalid_request");
    t.regex(url?.searchParams.get("error_description") ?? "", /must not be provided twice/);
  });

test("the response mode query is accepted", async (t) => {
  t.regex((await redirectFor({ response_mode: "query" }))?.pathname ?? "", /^\/interaction\//);
});

test("nonce, acr_values and claims_locales are ignored without openid", async (t) => {
  const parameters = { nonce: "n-0S6_WzA2Mj", acr_values: "1", claims_locales: "en" };
  for (const scope of ["links:read", undefined, "links:read openids"]) {
    const url = await redirectFor({ scope, ...parameters });
    t.regex(url?.pathname ?? "", /^\/interaction\//, url?.search);
  }
});

test("the authorization endpoint sends no CORS headers", async (t) => {
  for (const origin of ["https://evil.example", "null", service.url]) {
    const preflight = { method: "OPTIONS", "access-control-request-method": "GET" };
    for (const { method = "GET", ...headers } of [{}, preflight]) {
      const init = { method, redirect: "manual", headers: { origin, ...headers } } as const;
      const response = await fetch(authorizeUrl(service, app), init);
      t.is(response.headers.get("access-control-allow-origin"), null, `${method} ${origin}`);
    }
  }
});

const INVALID_FORMS: Record<string, string | URLSearchParams> = {
  "an unregistered redirect URI": formOf({ client_id: app.clientId, redirect_uri: "https://evil.example/" }),
  "no parameters": "",
  "a JSON body": JSON.stringify({ client_id: app.clientId, redirect_uri: REDIRECT_URI }),
};
for (const [what, body] of Object.entries(INVALID_FORMS))
  test(`a POST with ${what} gets an error page and no redirect to a client`, async (t) => {
    const browser = new TestBrowser(service.url);
    const page = await browser.open(`${service.url}/oauth/authorize`, { method: "POST", body });
    t.is(page.status, 400);
    t.is(new URL(page.url).origin, service.url);
  });

const STATES = {
  "letters from other scripts": "žluťoučký-кот-猫-🐈",
  "URL delimiters": "a=b&c=d?e#f/g+h%20i%2B;j,k",
  "line breaks": "a\r\nSet-Cookie: x=y\r\n\r\n",
  "2 KB": "s".repeat(2048),
};

for (const [what, state] of Object.entries(STATES))
  test(`a state with ${what} is returned unchanged, with a code and with an error`, async (t) => {
    const success = await allow(service, approving, authorizeUrl(service, app, { state }));
    t.is(success.searchParams.get("state"), state);
    t.is(success.searchParams.get("iss"), service.url);
    t.truthy(success.searchParams.get("code"));
    const failure = await redirectFor({ state, scope: "admin:all" });
    t.is(failure?.searchParams.get("state"), state);
    t.is(failure?.searchParams.get("error"), "invalid_scope");
  });

test("no page shows the state, or has it as markup", async (t) => {
  const state = `<i id="here">`;
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const signIn = await browser.open(authorizeUrl(service, app, { state }));
  const consent = await browser.signIn(signIn, user);
  const redirect_uri = "https://evil.example/";
  const errorPage = await browser.open(authorizeUrl(service, app, { state, redirect_uri }));
  for (const page of [signIn, consent, errorPage]) {
    t.true(page.url.startsWith(service.url), page.url);
    t.is(page.html.querySelector("#here"), null, page.url);
    t.false(page.html.textContent.includes("here"), page.url);
  }
});

test("the error page escapes what it repeats", async (t) => {
  const markup = "<img src=x onerror=alert(1)>";
  for (const changes of [{ client_id: markup }, { redirect_uri: markup }, { request_uri: markup }]) {
    const page = await new TestBrowser(service.url).open(authorizeUrl(service, app, changes));
    t.is(page.html.querySelector("img[src=x]"), null, JSON.stringify(changes));
  }
});
