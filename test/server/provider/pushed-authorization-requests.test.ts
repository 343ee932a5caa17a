import test from "ava";
import * as oidc from "openid-client";
import { OPERATOR } from "../../resources/events.ts";
import { advanceClock } from "../harness/clock.ts";
import { discover, REDIRECT_URI } from "../harness/flow.ts";
import { allow, ask, createApp, type Fields, openConsent, redeemCode, VERIFIER } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

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
  ask(service, "par", client, { client_id: client.clientId, ...REQUEST, ...changes });

async function pushed(changes: Fields = {}): Promise<string> {
  const { status, body, text } = await push(changes);
  if (status !== 201) throw new Error(text);
  return String(body.request_uri);
}

const urlFor = (request_uri: string, changes: Record<string, string> = {}) =>
  `${service.url}/oauth/authorize?${new URLSearchParams({ client_id: app.clientId, request_uri, ...changes })}`;

test("openid-client pushes a request, and the flow goes through", async (t) => {
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

test("a pushed request is a 201 with an address for a minute", async (t) => {
  const { status, body, headers } = await push();
  t.is(status, 201);
  t.regex(String(body.request_uri), /^urn:ietf:params:oauth:request_uri:[\w-]{43,}$/);
  t.is(body.expires_in, 60);
  t.regex(headers.get("cache-control") ?? "", /no-store/);
});

test("a nonce that is pushed without openid is ignored", async (t) => {
  const callback = await allow(service, user, urlFor(await pushed({ nonce: "n-0S6_WzA2Mj" })));
  const { status, body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(status, 200);
  t.is(body.id_token, undefined);
});

test("a nonce that is pushed with openid is in the id_token", async (t) => {
  const request = await pushed({ nonce: "n-0S6_WzA2Mj", scope: "openid links:read" });
  const callback = await allow(service, user, urlFor(request));
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  const [, payload = ""] = String(body.id_token).split(".");
  t.is(JSON.parse(Buffer.from(payload, "base64url").toString()).nonce, "n-0S6_WzA2Mj");
});

test("what was pushed counts, not what the address says beside it", async (t) => {
  const url = urlFor(await pushed({ scope: "links:read" }), {
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

test("without a scope the default is pushed, and resources are known by any of their forms", async (t) => {
  const url = urlFor(await pushed({ scope: undefined, resource: `${service.url}/v1/` }));
  const callback = await allow(service, user, url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(body.scope, "links:read links:write");
  const { body: token } = await ask(service, "introspect", app, { token: String(body.access_token) });
  t.is(token.aud, `${service.url}/v1`);
});

const REFUSED: [what: string, changes: Fields, error: RegExp][] = [
  ["no response_type", { response_type: undefined }, /^invalid_request$/],
  ["the implicit grant", { response_type: "token" }, /^unsupported_response_type$/],
  ["the mode fragment", { response_mode: "fragment" }, /^(invalid_request|unsupported_response_mode)$/],
  [
    "an unregistered redirect_uri",
    { redirect_uri: "https://evil.example/" },
    /^invalid_(request|redirect_uri)$/,
  ],
  [
    "no redirect_uri that is registered",
    { redirect_uri: `${REDIRECT_URI}/` },
    /^invalid_(request|redirect_uri)$/,
  ],
  ["no challenge", { code_challenge: undefined }, /^invalid_request$/],
  ["the method plain", { code_challenge_method: "plain" }, /^invalid_request$/],
  ["an unknown scope", { scope: "admin:all" }, /^invalid_scope$/],
  ["an unknown resource", { resource: "https://evil.example/" }, /^invalid_target$/],
  [
    "a request_uri",
    { request_uri: "urn:ietf:params:oauth:request_uri:x" },
    /^(invalid_request|request_uri_not_supported)$/,
  ],
  ["a request object", { request: "e30.e30." }, /^request_not_supported$/],
  ["state twice", { state: ["a", "b"] }, /^invalid_request$/],
  ["no client_id (RFC 9126 §2.1)", { client_id: undefined }, /^invalid_request$/],
  ["another client's id", { client_id: other.app.clientId }, /^invalid_request$/],
];

for (const [what, changes, error] of REFUSED) {
  test(`sec 52: a pushed request with ${what} is refused at once`, async (t) => {
    const { status, body } = await push(changes);
    t.is(status, 400);
    t.regex(String(body.error), error);
    t.false("request_uri" in body);
  });
}

async function errorOf(url: string): Promise<{ status: number; error: string | null; code: string | null }> {
  const page = await new Person(service.url).open(url);
  const { searchParams } = new URL(page.url);
  return { status: page.status, error: searchParams.get("error"), code: searchParams.get("code") };
}

test.serial("a pushed request that gave a code gives no other one, at once or later", async (t) => {
  const url = urlFor(await pushed());
  const person = new Person(service.url);
  t.truthy((await allow(service, user, url, { person })).searchParams.get("code"));
  const again = (await allow(service, user, url, { person })).searchParams;
  t.is(again.get("error"), "invalid_request_uri");
  t.is(again.get("code"), null);
  advanceClock(11_000);
  t.is((await errorOf(url)).error, "invalid_request_uri");
});

test("a pushed request opened in two browsers gives one code", async (t) => {
  const url = urlFor(await pushed());
  const people = [new Person(service.url), new Person(service.url)];
  const consents = [];
  for (const person of people) consents.push({ person, page: await openConsent(person, user, url) });
  const ends = await Promise.all(consents.map(({ person, page }) => person.press(page, "Allow")));
  t.is(ends.filter(({ url: end }) => new URL(end).searchParams.has("code")).length, 1);
});

test.serial("a pushed request is over after a minute", async (t) => {
  const url = urlFor(await pushed());
  advanceClock(61_000);
  t.is((await errorOf(url)).error, "invalid_request_uri");
});

test("another client cannot use a pushed request", async (t) => {
  const url = urlFor(await pushed(), { client_id: other.app.clientId });
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
  test(`nothing is fetched or found at the request_uri ${uri}`, async (t) => {
    const { status, error, code } = await errorOf(urlFor(uri));
    t.true(status === 400 || error !== null);
    t.is(code, null);
  });
}

test("a pushed request is no token and no code", async (t) => {
  const id = (await pushed()).split(":").at(-1) ?? "";
  t.deepEqual((await ask(service, "introspect", app, { token: id })).body, { active: false });
  t.is((await redeemCode(service, app, id)).body.error, "invalid_grant");
});

test("sec 25: prompt=none gives no code by a pushed request either, and uses it up no further", async (t) => {
  t.is((await errorOf(urlFor(await pushed({ prompt: "none" })))).error, "login_required");
  const person = new Person(service.url);
  await allow(service, user, urlFor(await pushed()), { person });
  const page = await person.open(urlFor(await pushed({ prompt: "none" })));
  t.is(new URL(page.url).searchParams.get("error"), "consent_required");
});

test("without a paid plan nothing is pushed, and what was pushed before leads nowhere", async (t) => {
  const mine = await createApp(service);
  const { body } = await push({}, mine.app);
  await service.storage.organizations.setPlan(mine.app.id, "free", OPERATOR);
  const refused = await push({}, mine.app);
  t.is(refused.status, 400);
  t.is(refused.body.error, "unauthorized_client");
  const url = urlFor(String(body.request_uri), { client_id: mine.app.clientId });
  t.is((await errorOf(url)).error, "unauthorized_client");
});
