import test from "ava";
import { REDIRECT_URI } from "../harness/flow.ts";
import { authorizeUrl, createApp, type Fields, formOf } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app } = await createApp(service);
test.after.always(() => service.close());

const state = "a state with ümlaut & <b>";

async function redirectOf(changes: Fields): Promise<URL | undefined> {
  const response = await fetch(authorizeUrl(service, app, { state, ...changes }), { redirect: "manual" });
  const location = response.headers.get("location");
  return location ? new URL(location, service.url) : undefined;
}

const REFUSALS: [what: string, changes: Fields, error: string][] = [
  ["no response_type", { response_type: undefined }, "invalid_request"],
  ["an unknown response_type", { response_type: "bogus" }, "unsupported_response_type"],
  ["the implicit grant", { response_type: "token" }, "unsupported_response_type"],
  ["an id_token in the front channel", { response_type: "id_token" }, "unsupported_response_type"],
  ["code with token", { response_type: "code token" }, "unsupported_response_type"],
  ["code with id_token", { response_type: "code id_token" }, "unsupported_response_type"],
  ["nothing as an answer", { response_type: "none" }, "unsupported_response_type"],
  ["CODE in capitals", { response_type: "CODE" }, "unsupported_response_type"],
  ["only unknown scopes", { scope: "admin:all everything" }, "invalid_scope"],
  ["offline_access alone", { scope: "offline_access" }, "invalid_scope"],
  ["a scope in another case", { scope: "LINKS:READ" }, "invalid_scope"],
  ["an unknown prompt", { prompt: "create" }, "invalid_request"],
  ["none beside another prompt", { prompt: "none login" }, "invalid_request"],
  ["a negative max_age", { max_age: "-1" }, "invalid_request"],
  ["an unknown resource", { resource: "https://evil.example/" }, "invalid_target"],
  ["a request object", { request: "e30.e30." }, "request_not_supported"],
  ["a registration in the request", { registration: "{}" }, "registration_not_supported"],
  ["an id_token_hint that is none", { id_token_hint: "nonsense" }, "invalid_request"],
];

for (const [what, changes, error] of REFUSALS) {
  test(`sec 6, 12, 15: ${what} sends the person back with ${error}, state and iss`, async (t) => {
    const url = await redirectOf(changes);
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.is(url?.searchParams.get("error"), error);
    t.is(url?.searchParams.get("state"), state);
    t.is(url?.searchParams.get("iss"), service.url);
    t.is(url?.searchParams.get("code"), null);
    t.is(url?.hash, "");
  });
}

for (const mode of ["fragment", "form_post", "web_message", "query.jwt", "fragment.jwt", "jwt", "bogus"]) {
  test(`sec 19: the response mode ${mode} is refused, in the query`, async (t) => {
    const response = await fetch(authorizeUrl(service, app, { response_mode: mode }), { redirect: "manual" });
    const url = new URL(response.headers.get("location") ?? "none:", service.url);
    t.is(url.origin + url.pathname, REDIRECT_URI);
    t.regex(url.searchParams.get("error") ?? "", /^(invalid_request|unsupported_response_mode)$/);
    t.is(url.searchParams.get("iss"), service.url);
    t.is(url.hash, "");
  });
}

test("sec 19: the response mode query may be named", async (t) => {
  t.regex((await redirectOf({ response_mode: "query" }))?.pathname ?? "", /^\/interaction\//);
});

const REPEATABLE = {
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
for (const [name, value] of Object.entries(REPEATABLE)) {
  test(`sec 16: ${name} twice is invalid_request`, async (t) => {
    const url = await redirectOf({ [name]: [value, value] });
    t.is(url?.origin + String(url?.pathname), REDIRECT_URI);
    t.is(url?.searchParams.get("error"), "invalid_request");
  });
}

test("sec 17: unknown parameters are ignored, empty ones are absent ones", async (t) => {
  const url = await redirectOf({ foo: ["1", "2"], nonce: "", prompt: "", max_age: "", resource: "" });
  t.regex(url?.pathname ?? "", /^\/interaction\//);
});

for (const [name, value] of Object.entries({
  nonce: "n-0S6_WzA2Mj",
  acr_values: "1",
  claims_locales: "en",
})) {
  test(`sec 17: ${name} is ignored without openid`, async (t) => {
    for (const scope of ["links:read", undefined, "links:read openids"]) {
      const url = await redirectOf({ scope, [name]: value });
      t.regex(url?.pathname ?? "", /^\/interaction\//, url?.search);
    }
  });
}

// They restrict who may sign in: a client that relies on them must not be misled.
for (const [name, value] of Object.entries({ max_age: "60", id_token_hint: "x" })) {
  test(`${name} without openid is invalid_request`, async (t) => {
    const url = await redirectOf({ [name]: value });
    t.is(url?.searchParams.get("error"), "invalid_request");
    t.regex(url?.searchParams.get("error_description") ?? "", /openid/);
  });
}

test("sec 20: the authorization endpoint is closed to scripts of other origins", async (t) => {
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

test("sec 24: nobody is sent to an app's address before its client and address are known to be right", async (t) => {
  for (const changes of [
    { redirect_uri: "https://evil.example/", scope: "admin:all" },
    { redirect_uri: "https://evil.example/", prompt: "none" },
    { redirect_uri: "https://evil.example/", response_type: "token" },
    { redirect_uri: "https://evil.example/", scope: ["a", "b"] },
    { client_id: "lgc_nobody", prompt: "none" },
  ]) {
    t.is(await redirectOf(changes), undefined, JSON.stringify(changes));
  }
});

test("an authorization request may be sent as a form", async (t) => {
  const person = new Person(service.url);
  const [address, query] = authorizeUrl(service, app).split("?");
  const page = await person.open(String(address), { method: "POST", body: new URLSearchParams(query) });
  t.is(page.status, 200);
  t.truthy(page.html.querySelector("#password"));
});

const BAD_FORMS: Record<string, string | URLSearchParams> = {
  "another address": formOf({ client_id: app.clientId, redirect_uri: "https://evil.example/" }),
  nothing: "",
  JSON: JSON.stringify({ client_id: app.clientId, redirect_uri: REDIRECT_URI }),
};
for (const [what, body] of Object.entries(BAD_FORMS)) {
  test(`sec 11: a form with ${what} leads to no other place than the same page of refusal`, async (t) => {
    const page = await new Person(service.url).open(`${service.url}/oauth/authorize`, {
      method: "POST",
      body,
    });
    t.is(page.status, 400);
    t.is(new URL(page.url).origin, service.url);
  });
}

const METHODS = ["PUT", "PATCH", "DELETE", "HEAD"];
for (const method of METHODS) {
  test(`${method} is no way to ask for authorization`, async (t) => {
    const { status } = await fetch(authorizeUrl(service, app), { method, redirect: "manual" });
    t.is(status, 405);
  });
}

for (const path of ["/OAUTH/authorize", "/oauth/authorize/", "/oauth//authorize", "/oauth/Authorize"]) {
  test(`${path} is not the authorization endpoint`, async (t) => {
    const url = authorizeUrl(service, app).replace("/oauth/authorize", path);
    t.is((await fetch(url, { redirect: "manual" })).status, 404);
  });
}
