import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { startApp } from "../harness/clients/app-server.ts";
import { allow, shareApp } from "../harness/clients/authorization.ts";
import {
  authorizeUrl,
  createApp,
  type Fields,
  REDIRECT_URI,
} from "../harness/clients/authorization-request.ts";
import { outcomeOf, postAsClient, redeemCode } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";

const { service, app, user, other } = await shareApp();

const push = (changes: Fields = {}, client = app) => {
  const request = Object.fromEntries(new URL(authorizeUrl(service, client)).searchParams);
  return postAsClient(service, "par", client, { ...request, ...changes });
};

async function requestUriFor(changes: Fields = {}, client = app): Promise<string> {
  const { status, body, text } = await push(changes, client);
  if (status !== 201) throw new Error(text);
  return String(body.request_uri);
}

const urlFor = (request_uri: string, changes: Record<string, string> = {}) =>
  `${service.url}/oauth/authorize?${new URLSearchParams({ client_id: app.clientId, request_uri, ...changes })}`;

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
  for (let index = 0; index < 43; index++)
    t.true(new Set(values.map((value) => value[index])).size > 1, `character ${index}`);
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
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(body.scope, "links:read");
});

test("a pushed request without a scope gets the default, and its resource is canonicalized", async (t) => {
  const url = urlFor(await requestUriFor({ scope: undefined, resource: `${service.url}/v1/` }));
  const callback = await allow(service, user, url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(body.scope, "links:read links:write");
  const token = String(body.access_token);
  t.is((await postAsClient(service, "introspect", app, { token })).body.aud, `${service.url}/v1`);
});

const URI_ERROR = /^invalid_(request|redirect_uri)$/;
const INVALID_REQUESTS: [what: string, changes: Fields, error: RegExp][] = [
  ["no response_type", { response_type: undefined }, /^invalid_request$/],
  ["an unregistered redirect_uri", { redirect_uri: "https://evil.example/" }, URI_ERROR],
  ["an unknown resource", { resource: "https://evil.example/" }, /^invalid_target$/],
  ["a request object", { request: "e30.e30." }, /^request_not_supported$/],
  ["a repeated state", { state: ["a", "b"] }, /^invalid_request$/],
  ["no client_id (RFC 9126 §2.1)", { client_id: undefined }, /^invalid_request$/],
  ["another client's id", { client_id: other.app.clientId }, /^invalid_request$/],
];

for (const [what, changes, error] of INVALID_REQUESTS)
  test(`a pushed request with ${what} is rejected immediately`, async (t) => {
    const { status, body } = await push(changes);
    t.is(status, 400);
    t.regex(String(body.error), error);
    t.false("request_uri" in body);
  });

/** Returns the error that the app gets, if necessary after a sign-in or if the user continues from the error page. */
async function errorOf(url: string): Promise<{ status: number; error: string | null; code: string | null }> {
  const browser = new TestBrowser(service.url);
  const opened = await browser.open(url);
  const page = opened.url.includes("/auth/login?") ? await browser.signIn(opened, user) : opened;
  const { searchParams } = new URL(page.html.querySelector("main a")?.attributes.href ?? page.url);
  return { status: page.status, error: searchParams.get("error"), code: searchParams.get("code") };
}

test("an unknown request_uri is rejected and not fetched", async (t) => {
  let requests = 0;
  const site = await startApp((_request, response) => {
    requests++;
    response.end();
  });
  for (const uri of ["urn:ietf:params:oauth:request_uri:unknown", site.url, "x"]) {
    const { status, error, code } = await errorOf(urlFor(uri));
    t.true(status === 400 || error !== null, uri);
    t.is(code, null, uri);
  }
  t.is(requests, 0);
});

test("a request_uri is neither a token nor a code", async (t) => {
  const id = (await requestUriFor()).split(":").at(-1) ?? "";
  t.deepEqual((await postAsClient(service, "introspect", app, { token: id })).body, { active: false });
  t.is((await redeemCode(service, app, id)).body.error, "invalid_grant");
});

test("prompt=none in a pushed request leads to no code without a session or consent", async (t) => {
  t.is((await errorOf(urlFor(await requestUriFor({ prompt: "none" })))).error, "login_required");
  const browser = new TestBrowser(service.url);
  await allow(service, user, urlFor(await requestUriFor()), { browser });
  const allowed = await browser.open(urlFor(await requestUriFor({ prompt: "none" })));
  t.truthy(new URL(allowed.url).searchParams.get("code"));
  const url = urlFor(await requestUriFor({ prompt: "none", scope: "webhooks:write" }));
  const page = await browser.open(url);
  t.is(new URL(page.url).searchParams.get("error"), "consent_required");
});

test("a client on the Free plan can neither push a request nor use one pushed before", async (t) => {
  const mine = await createApp(service);
  const requestUri = await requestUriFor({}, mine.app);
  await service.storage.organizations.setPlan(mine.app.id, "free", OPERATOR);
  t.is(await outcomeOf(push({}, mine.app)), "400 unauthorized_client");
  const url = urlFor(requestUri, { client_id: mine.app.clientId });
  t.is((await errorOf(url)).error, "unauthorized_client");
});
