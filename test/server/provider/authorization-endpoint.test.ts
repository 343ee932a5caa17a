import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  authorizeUrl,
  createApp,
  type Fields,
  formOf,
  openConsent,
  postAsClient,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const signedIn = new TestBrowser(service.url);
await openConsent(signedIn, user, authorizeUrl(service, app));

const { browser: signedInBrowser } = await browserOf(service, user);

test.after.always(() => service.close());

signedIn.follows = false;

const state = "a state with ümlaut & <b>";

async function redirectFor(changes: Fields): Promise<URL | undefined> {
  const { headers } = await signedIn.open(authorizeUrl(service, app, { state, ...changes }));
  const location = headers.get("location");
  return location ? new URL(location, service.url) : undefined;
}

const INVALID_REQUESTS: [what: string, changes: Fields, error: string][] = [
  ["no response_type", { response_type: undefined }, "invalid_request"],
  ["an unknown response_type", { response_type: "bogus" }, "unsupported_response_type"],
  ["the implicit response type", { response_type: "token" }, "unsupported_response_type"],
  ["the response type id_token", { response_type: "id_token" }, "unsupported_response_type"],
  ["the response type code token", { response_type: "code token" }, "unsupported_response_type"],
  ["the response type code id_token", { response_type: "code id_token" }, "unsupported_response_type"],
  ["the response type none", { response_type: "none" }, "unsupported_response_type"],
  ["an upper-case response type", { response_type: "CODE" }, "unsupported_response_type"],
  ["only unknown scopes", { scope: "admin:all everything" }, "invalid_scope"],
  ["only offline_access", { scope: "offline_access" }, "invalid_scope"],
  ["an upper-case scope", { scope: "LINKS:READ" }, "invalid_scope"],
  ["an unknown prompt", { prompt: "create" }, "invalid_request"],
  ["prompt=none and another prompt", { prompt: "none login" }, "invalid_request"],
  ["a negative max_age", { max_age: "-1" }, "invalid_request"],
  ["an unknown resource", { resource: "https://evil.example/" }, "invalid_target"],
  ["a request object", { request: "e30.e30." }, "request_not_supported"],
  ["a registration parameter", { registration: "{}" }, "registration_not_supported"],
  ["a malformed id_token_hint", { id_token_hint: "nonsense" }, "invalid_request"],
];

for (const [what, changes, error] of INVALID_REQUESTS) {
  test(`a request with ${what} redirects with ${error}, state and iss`, async (t) => {
    const url = await redirectFor(changes);
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.is(url?.searchParams.get("error"), error);
    t.is(url?.searchParams.get("state"), state);
    t.is(url?.searchParams.get("iss"), service.url);
    t.is(url?.searchParams.get("code"), null);
    t.is(url?.hash, "");
  });
}

for (const mode of ["fragment", "form_post", "web_message", "query.jwt", "fragment.jwt", "jwt", "bogus"]) {
  test(`the response mode ${mode} is rejected, and the error is in the query`, async (t) => {
    const url = await redirectFor({ response_mode: mode });
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.regex(url?.searchParams.get("error") ?? "", /^(invalid_request|unsupported_response_mode)$/);
    t.is(url?.searchParams.get("iss"), service.url);
    t.is(url?.hash, "");
  });
}

test("the response mode query is accepted", async (t) => {
  t.regex((await redirectFor({ response_mode: "query" }))?.pathname ?? "", /^\/interaction\//);
});

const SINGLE_PARAMETERS = {
  response_type: "code",
  scope: "links:read",
  state: "x",
  nonce: "x",
  prompt: "consent",
  max_age: "1",
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256",
  response_mode: "query",
  login_hint: "x",
  ui_locales: "en",
  acr_values: "x",
  id_token_hint: "x",
  claims_locales: "en",
  display: "page",
  request: "x",
  request_uri: "x",
};
for (const [name, value] of Object.entries(SINGLE_PARAMETERS)) {
  test(`a repeated ${name} is rejected with invalid_request`, async (t) => {
    const url = await redirectFor({ [name]: [value, value] });
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.is(url?.searchParams.get("error"), "invalid_request");
  });
}

test("unknown and empty parameters are ignored", async (t) => {
  const url = await redirectFor({ foo: ["1", "2"], nonce: "", prompt: "", max_age: "", resource: "" });
  t.regex(url?.pathname ?? "", /^\/interaction\//);
});

for (const [name, value] of Object.entries({
  nonce: "n-0S6_WzA2Mj",
  acr_values: "1",
  claims_locales: "en",
})) {
  test(`${name} is ignored without openid`, async (t) => {
    for (const scope of ["links:read", undefined, "links:read openids"]) {
      const url = await redirectFor({ scope, [name]: value });
      t.regex(url?.pathname ?? "", /^\/interaction\//, url?.search);
    }
  });
}

// These restrict who may sign in, so a client must not be led to believe that they took effect.
for (const [name, value] of Object.entries({ max_age: "60", id_token_hint: "x" })) {
  test(`${name} without openid is rejected with invalid_request`, async (t) => {
    const url = await redirectFor({ [name]: value });
    t.is(url?.searchParams.get("error"), "invalid_request");
    t.regex(url?.searchParams.get("error_description") ?? "", /openid/);
  });
}

test("a missing response_type is named in the error, which reaches the app", async (t) => {
  const query = (await redirectFor({ response_type: undefined }))?.searchParams;
  t.is(query?.get("error"), "invalid_request");
  t.is(query?.get("error_description"), "missing required parameter 'response_type'");
  const { body } = await postAsClient(service, "par", app, { client_id: app.clientId });
  t.is(body.error_description, "missing required parameter 'response_type'");
});

test("the authorization endpoint sends no CORS headers", async (t) => {
  for (const origin of ["https://evil.example", "null", service.url]) {
    const response = await fetch(authorizeUrl(service, app), { redirect: "manual", headers: { origin } });
    t.is(response.headers.get("access-control-allow-origin"), null, origin);
    const preflight = await fetch(authorizeUrl(service, app), {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "GET" },
    });
    t.is(preflight.headers.get("access-control-allow-origin"), null, origin);
  }
});

test("a request with an invalid client or redirect URI never redirects", async (t) => {
  for (const changes of [
    { redirect_uri: "https://evil.example/", scope: "admin:all" },
    { redirect_uri: "https://evil.example/", prompt: "none" },
    { redirect_uri: "https://evil.example/", response_type: "token" },
    { redirect_uri: "https://evil.example/", scope: ["a", "b"] },
    { client_id: "lgc_nobody", prompt: "none" },
  ]) {
    t.is(await redirectFor(changes), undefined, JSON.stringify(changes));
  }
});

test("an authorization request may be sent as a form", async (t) => {
  const browser = new TestBrowser(service.url);
  const [endpoint, query] = authorizeUrl(service, app).split("?");
  const page = await browser.open(String(endpoint), { method: "POST", body: new URLSearchParams(query) });
  t.is(page.status, 200);
  t.truthy(page.html.querySelector("#password"));
});

const INVALID_FORMS: Record<string, string | URLSearchParams> = {
  "an unregistered redirect URI": formOf({ client_id: app.clientId, redirect_uri: "https://evil.example/" }),
  "no parameters": "",
  "a JSON body": JSON.stringify({ client_id: app.clientId, redirect_uri: REDIRECT_URI }),
};
for (const [what, body] of Object.entries(INVALID_FORMS)) {
  test(`a POST with ${what} gets an error page and no redirect to a client`, async (t) => {
    const page = await new TestBrowser(service.url).open(`${service.url}/oauth/authorize`, {
      method: "POST",
      body,
    });
    t.is(page.status, 400);
    t.is(new URL(page.url).origin, service.url);
  });
}

const METHODS = ["PUT", "PATCH", "DELETE"];
for (const method of METHODS) {
  test(`${method} is rejected at the authorization endpoint`, async (t) => {
    const { status } = await fetch(authorizeUrl(service, app), { method, redirect: "manual" });
    t.is(status, 405);
  });
}

for (const path of ["/OAUTH/authorize", "/oauth/authorize/", "/oauth//authorize", "/oauth/Authorize"]) {
  test(`the authorization endpoint does not exist at ${path}`, async (t) => {
    const url = authorizeUrl(service, app).replace("/oauth/authorize", path);
    t.is((await fetch(url, { redirect: "manual" })).status, 404);
  });
}

const STATES = {
  "letters from other scripts": "žluťoučký-кот-猫-🐈",
  quotes: `"'\`<>`,
  "HTML markup": "<script>alert(1)</script>",
  "URL delimiters": "a=b&c=d?e#f/g+h%20i%2B;j,k",
  "leading and trailing spaces": " x ",
  "a percent sign": "%",
  "a NUL": "a\u0000b",
  "line breaks": "a\r\nSet-Cookie: x=y\r\n\r\n",
  "2 KB": "s".repeat(2048),
  "a backslash": "\\x00\\u0000",
};

for (const [what, state] of Object.entries(STATES)) {
  test(`a state with ${what} is returned unchanged, with a code and with an error`, async (t) => {
    const success = await allow(service, user, authorizeUrl(service, app, { state }));
    t.is(success.searchParams.get("state"), state);
    t.truthy(success.searchParams.get("code"));
    const failure = await signedInBrowser.open(authorizeUrl(service, app, { state, scope: "admin:all" }));
    t.is(new URL(failure.url).searchParams.get("state"), state);
    t.is(new URL(failure.url).searchParams.get("error"), "invalid_scope");
  });
}

test("no page shows the state, or has it as markup", async (t) => {
  const state = `<i id="here">`;
  // Other tests of this file let the consent of their user be remembered, so there would be no page.
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const signIn = await browser.open(authorizeUrl(service, app, { state }));
  const consent = await browser.signIn(signIn, user);
  const errorPage = await browser.open(
    authorizeUrl(service, app, { state, redirect_uri: "https://evil.example/" }),
  );
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

test("a response to a request without a state contains none", async (t) => {
  const callback = await allow(service, user, authorizeUrl(service, app, { state: undefined }));
  t.is(callback.origin + callback.pathname, REDIRECT_URI);
  t.deepEqual([...callback.searchParams.keys()].sort(), ["code", "iss"]);
});

test("an approval and a cancellation both return iss", async (t) => {
  const url = authorizeUrl(service, app);
  const success = await allow(service, user, url);
  t.is(success.searchParams.get("iss"), service.url);
  const browser = new TestBrowser(service.url);
  const consent = await openConsent(browser, user, url);
  const cancelled = new URL((await browser.press(consent, "Cancel")).url);
  t.is(cancelled.searchParams.get("error"), "access_denied");
  t.is(cancelled.searchParams.get("iss"), service.url);
  t.is(cancelled.searchParams.get("state"), "a-state");
});

test("the query of a redirect URI is preserved", async (t) => {
  const uri = "https://app.example.com/cb?tenant=a%20b&x=";
  const { app: other, user: owner } = await createApp(service, [uri]);
  const callback = await allow(service, owner, authorizeUrl(service, other, { redirect_uri: uri }));
  t.is(callback.searchParams.get("tenant"), "a b");
  t.is(callback.searchParams.get("x"), "");
  t.truthy(callback.searchParams.get("code"));
});

test("a redirect URI with a private-use scheme receives the code", async (t) => {
  const uri = "com.example.app:/oauth/callback";
  const { app: native, user: owner } = await createApp(service, [uri]);
  const callback = await allow(service, owner, authorizeUrl(service, native, { redirect_uri: uri }));
  t.true(callback.href.startsWith(`${uri}?code=`));
});

async function sessionOf(browser: TestBrowser): Promise<string | undefined> {
  const cookies = await browser.jar.getCookies(service.url);
  return cookies.find(({ key }) => key === "session")?.value;
}

test("signing in replaces a session cookie that an attacker has set", async (t) => {
  const browser = new TestBrowser(service.url);
  await browser.jar.setCookie("session=chosen-by-an-attacker", service.url);
  await browser.jar.setCookie("session.sig=chosen-by-an-attacker", service.url);
  await openConsent(browser, user, authorizeUrl(service, app));
  const session = await sessionOf(browser);
  t.truthy(session);
  t.not(session, "chosen-by-an-attacker");
});

test("signing in again creates a new session and ends the old one", async (t) => {
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app), { browser });
  const before = (await browser.jar.getCookies(service.url)).filter(({ key }) => key.startsWith("session"));
  const again = await browser.open(authorizeUrl(service, app, { prompt: "login" }));
  await browser.signIn(again, user);
  t.not(await sessionOf(browser), before.find(({ key }) => key === "session")?.value);

  const thief = new TestBrowser(service.url);
  for (const cookie of before) await thief.jar.setCookie(cookie.toString(), service.url);
  const page = await thief.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"), "the old cookie leads to the sign-in form");
});
