import test from "ava";
import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import { discover, REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  createApp,
  type Fields,
  openConsent,
  postAsClient,
  redeemCode,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
const other = await createApp(service);
test.after.always(() => service.close());

const REQUEST: Fields = {
  response_type: "code",
  redirect_uri: REDIRECT_URI,
  scope: "links:write",
  state: "a-state",
  code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  code_challenge_method: "S256",
};

const push = (changes: Fields = {}, client = app) =>
  postAsClient(service, "par", client, { client_id: client.clientId, ...REQUEST, ...changes });

async function requestUriFor(changes: Fields = {}): Promise<string> {
  const { status, body, text } = await push(changes);
  if (status !== 201) throw new Error(text);
  return String(body.request_uri);
}

const urlFor = (request_uri: string, changes: Record<string, string> = {}) =>
  `${service.url}/oauth/authorize?${new URLSearchParams({ client_id: app.clientId, request_uri, ...changes })}`;

test("openid-client completes the code flow with a pushed request", async (t) => {
  const config = await discover(service, app);
  const verifier = oidc.randomPKCECodeVerifier();
  const url = await oidc.buildAuthorizationUrlWithPAR(config, {
    redirect_uri: REDIRECT_URI,
    scope: "openid links:read",
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  t.deepEqual([...url.searchParams.keys()].sort(), ["client_id", "request_uri"]);
  const callback = await allow(service, user, url.href);
  const tokens = await oidc.authorizationCodeGrant(config, callback, { pkceCodeVerifier: verifier });
  t.is(tokens.scope, "openid links:read");
  t.is(tokens.claims()?.organization_id, own.id);
});

test("a pushed request gets 201 and a request_uri that is valid for one minute", async (t) => {
  const { status, body, headers } = await push();
  t.is(status, 201);
  t.regex(String(body.request_uri), /^urn:ietf:params:oauth:request_uri:[\w-]{43,}$/);
  t.is(body.expires_in, 60);
  t.regex(headers.get("cache-control") ?? "", /no-store/);
});

test("equal pushed requests get request_uris that are random throughout", async (t) => {
  const pushed = await Promise.all(Array.from({ length: 16 }, () => requestUriFor()));
  const values = pushed.map((uri) => uri.split(":").at(-1) ?? "");
  t.is(new Set(values).size, values.length);
  for (let index = 0; index < 43; index++) {
    t.true(new Set(values.map((value) => value[index])).size > 1, `character ${index}`);
  }
});

test("a nonce pushed without openid is ignored", async (t) => {
  const callback = await allow(service, user, urlFor(await requestUriFor({ nonce: "n-0S6_WzA2Mj" })));
  const { status, body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(status, 200);
  t.is(body.id_token, undefined);
});

test("a nonce pushed with openid is in the id_token", async (t) => {
  const request = await requestUriFor({ nonce: "n-0S6_WzA2Mj", scope: "openid links:read" });
  const callback = await allow(service, user, urlFor(request));
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  const [, payload = ""] = String(body.id_token).split(".");
  t.is(JSON.parse(Buffer.from(payload, "base64url").toString()).nonce, "n-0S6_WzA2Mj");
});

test("pushed parameters take precedence over those in the URL", async (t) => {
  const url = urlFor(await requestUriFor({ scope: "links:read" }), {
    scope: "links:write webhooks:write",
    redirect_uri: "https://evil.example/",
    state: "another",
  });
  const callback = await allow(service, user, url);
  t.is(callback.origin + callback.pathname, REDIRECT_URI);
  t.is(callback.searchParams.get("state"), "a-state");
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")), {
    code_verifier: VERIFIER,
  });
  t.is(body.scope, "links:read");
});

test("a pushed request without a scope gets the default, and its resource is canonicalized", async (t) => {
  const url = urlFor(await requestUriFor({ scope: undefined, resource: `${service.url}/v1/` }));
  const callback = await allow(service, user, url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(body.scope, "links:read links:write");
  const { body: token } = await postAsClient(service, "introspect", app, {
    token: String(body.access_token),
  });
  t.is(token.aud, `${service.url}/v1`);
});

const INVALID_REQUESTS: [what: string, changes: Fields, error: RegExp][] = [
  ["no response_type", { response_type: undefined }, /^invalid_request$/],
  ["the implicit response type", { response_type: "token" }, /^unsupported_response_type$/],
  [
    "the response mode fragment",
    { response_mode: "fragment" },
    /^(invalid_request|unsupported_response_mode)$/,
  ],
  [
    "an unregistered redirect_uri",
    { redirect_uri: "https://evil.example/" },
    /^invalid_(request|redirect_uri)$/,
  ],
  [
    "a redirect_uri with a trailing slash",
    { redirect_uri: `${REDIRECT_URI}/` },
    /^invalid_(request|redirect_uri)$/,
  ],
  ["no challenge", { code_challenge: undefined }, /^invalid_request$/],
  ["the challenge method plain", { code_challenge_method: "plain" }, /^invalid_request$/],
  ["an unknown scope", { scope: "admin:all" }, /^invalid_scope$/],
  ["an unknown resource", { resource: "https://evil.example/" }, /^invalid_target$/],
  [
    "a request_uri",
    { request_uri: "urn:ietf:params:oauth:request_uri:x" },
    /^invalid_request$/, // RFC 9126 §2.1
  ],
  ["a request object", { request: "e30.e30." }, /^request_not_supported$/],
  ["a repeated state", { state: ["a", "b"] }, /^invalid_request$/],
  ["no client_id (RFC 9126 §2.1)", { client_id: undefined }, /^invalid_request$/],
  ["another client's id", { client_id: other.app.clientId }, /^invalid_request$/],
];

for (const [what, changes, error] of INVALID_REQUESTS) {
  test(`a pushed request with ${what} is rejected immediately`, async (t) => {
    const { status, body } = await push(changes);
    t.is(status, 400);
    t.regex(String(body.error), error);
    t.false("request_uri" in body);
  });
}

/** Returns the error that the app gets, if necessary after a sign-in or if the user continues from the error page. */
async function errorOf(url: string): Promise<{ status: number; error: string | null; code: string | null }> {
  const browser = new TestBrowser(service.url);
  const opened = await browser.open(url);
  const page = opened.url.includes("/auth/login?") ? await browser.signIn(opened, user) : opened;
  const { searchParams } = new URL(page.html.querySelector("main a")?.attributes.href ?? page.url);
  return { status: page.status, error: searchParams.get("error"), code: searchParams.get("code") };
}

test.serial("a pushed request that led to a code can't be used again, immediately or later", async (t) => {
  const url = urlFor(await requestUriFor());
  const browser = new TestBrowser(service.url);
  t.truthy((await allow(service, user, url, { browser })).searchParams.get("code"));
  const again = (await allow(service, user, url, { browser })).searchParams;
  t.is(again.get("error"), "invalid_request_uri");
  t.is(again.get("code"), null);
  advanceClock(11_000);
  t.is((await errorOf(url)).error, "invalid_request_uri");
});

test("a pushed request opened in two browsers leads to one code", async (t) => {
  const url = urlFor(await requestUriFor({ prompt: "consent" }));
  const browsers = [new TestBrowser(service.url), new TestBrowser(service.url)];
  const consents = [];
  for (const browser of browsers) consents.push({ browser, page: await openConsent(browser, user, url) });
  const ends = await Promise.all(consents.map(({ browser, page }) => browser.press(page, "Allow")));
  t.is(ends.filter(({ url: end }) => new URL(end).searchParams.has("code")).length, 1);
});

test.serial("a pushed request expires after one minute", async (t) => {
  const url = urlFor(await requestUriFor());
  advanceClock(61_000);
  t.is((await errorOf(url)).error, "invalid_request_uri");
});

test("another client can't use a pushed request", async (t) => {
  const url = urlFor(await requestUriFor(), { client_id: other.app.clientId });
  const { error, code } = await errorOf(url);
  t.truthy(error);
  t.is(code, null);
});

for (const uri of [
  "urn:ietf:params:oauth:request_uri:unknown",
  "urn:ietf:params:oauth:request_uri:",
  "https://evil.example/request",
  "http://127.0.0.1/",
  "x",
]) {
  test(`the request_uri ${uri} is rejected and not fetched`, async (t) => {
    const { status, error, code } = await errorOf(urlFor(uri));
    t.true(status === 400 || error !== null);
    t.is(code, null);
  });
}

test("a request_uri is neither a token nor a code", async (t) => {
  const id = (await requestUriFor()).split(":").at(-1) ?? "";
  t.deepEqual((await postAsClient(service, "introspect", app, { token: id })).body, { active: false });
  t.is((await redeemCode(service, app, id)).body.error, "invalid_grant");
});

test("prompt=none in a pushed request leads to no code without a session or consent", async (t) => {
  t.is((await errorOf(urlFor(await requestUriFor({ prompt: "none" })))).error, "login_required");
  const browser = new TestBrowser(service.url);
  await allow(service, user, urlFor(await requestUriFor()), { browser });
  const url = urlFor(await requestUriFor({ prompt: "none", scope: "webhooks:write" }));
  const page = await browser.open(url);
  t.is(new URL(page.url).searchParams.get("error"), "consent_required");
});

test("a client on the Free plan can neither push a request nor use one pushed before", async (t) => {
  const mine = await createApp(service);
  const { body } = await push({}, mine.app);
  await service.storage.organizations.setPlan(mine.app.id, "free", OPERATOR);
  const rejected = await push({}, mine.app);
  t.is(rejected.status, 400);
  t.is(rejected.body.error, "unauthorized_client");
  const url = urlFor(String(body.request_uri), { client_id: mine.app.clientId });
  t.is((await errorOf(url)).error, "unauthorized_client");
});
