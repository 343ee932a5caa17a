import test from "ava";
import { ENDPOINT_LIST } from "../../server/oauth-endpoints.ts";
import { codeFor, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { type Fields, formOf } from "../harness/clients/authorization-request.ts";
import {
  basic,
  isAcceptedByApi,
  outcomeOf,
  postAsClient,
  read,
  redeemCode,
  refresh,
} from "../harness/clients/oauth.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { postForm } from "../harness/service.ts";

const ORIGIN = "https://console.example.com";
const { service, app, user } = await shareApp({ ALLOWED_ORIGINS: ORIGIN, DYNAMIC_REGISTRATION: "stateless" });

const url = `${service.url}/oauth/token`;
const REQUEST = { grant_type: "client_credentials" };

const FORM_TYPE = "application/x-www-form-urlencoded";

const ENDPOINTS = ["token", "revoke", "introspect", "par"];

const SERVED = ENDPOINT_LIST.filter(({ name }) => name !== "leak_reports");

for (const { name, path, methods } of SERVED)
  test(`only ${methods.join(", ")} is accepted at the ${name} endpoint`, async (t) => {
    const query = formOf({ ...REQUEST, client_id: app.clientId, client_secret: app.clientSecret });
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]) {
      if (methods.includes(method)) continue;
      const { status, headers } = await fetch(`${service.url}${path}?${query}`, { method });
      t.is(status, 405, method);
      for (const one of methods) t.true(headers.get("allow")?.includes(one), method);
    }
  });

const HTTP = ORIGIN.replace("https", "http");
const FOREIGN = ["https://evil.example", "null", `${ORIGIN}.evil.example`, HTTP, `${ORIGIN}:8443`];

for (const { name, path, methods, acceptsDpop } of SERVED.filter(({ origins }) => origins === "listed"))
  test(`scripts of allowed origins can call the ${name} endpoint and read its response, others can't`, async (t) => {
    for (const origin of [ORIGIN, service.url, ...FOREIGN]) {
      const allowed = FOREIGN.includes(origin) ? null : origin;
      const header = acceptsDpop ? "dpop" : "content-type";
      const requested = { "access-control-request-method": "POST", "access-control-request-headers": header };
      const preflight = await fetch(service.url + path, {
        method: "OPTIONS",
        headers: { origin, ...requested },
      });
      t.is(preflight.headers.get("access-control-allow-origin"), allowed, origin);
      if (allowed) t.is(preflight.headers.get("access-control-allow-headers"), header);
      for (const method of methods) {
        const { headers } = await fetch(service.url + path, { method, headers: { origin } });
        t.is(headers.get("access-control-allow-origin"), allowed, `${method} ${origin}`);
        t.is(headers.get("access-control-allow-credentials"), null, origin);
        if (allowed && acceptsDpop) t.regex(headers.get("access-control-expose-headers") ?? "", /DPoP-Nonce/);
      }
    }
  });

test("a token request of another website issues nothing", async (t) => {
  const ask = (origin: string) => postForm(url, REQUEST, { ...basic(app), origin });
  t.is((await ask(ORIGIN)).status, 200);
  for (const origin of FOREIGN) t.not((await ask(origin)).status, 200, origin);
});

const FORM = "grant_type=client_credentials";
const PART = `Content-Disposition: form-data; name="grant_type"\r\n\r\nclient_credentials`;
const INVALID_BODIES: [what: string, type: string, body: string][] = [
  ["JSON", "application/json", JSON.stringify(REQUEST)],
  ["a form sent as text", "text/plain", FORM],
  ["a form without a content type", "", FORM],
  ["multipart", "multipart/form-data; boundary=x", `--x\r\n${PART}\r\n--x--`],
];

for (const [what, type, body] of INVALID_BODIES)
  test(`a token request in the form of ${what} is rejected`, async (t) => {
    const headers = ["authorization", basic(app).authorization, ...(type ? ["content-type", type] : [])];
    const answer = await sendRaw(service.url, "/oauth/token", { method: "POST", headers, body });
    t.is(answer.status, 400, answer.text);
    t.is(JSON.parse(answer.text).error, "invalid_request");
  });

test("parameters in the query are ignored", async (t) => {
  const answer = read(postForm(`${url}?grant_type=client_credentials`, {}, basic(app)));
  t.is(await outcomeOf(answer), "400 invalid_request");
});

test("every response of the endpoints has cache-control no-store", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const responses = {
    token: await postAsClient(service, "token", app, REQUEST),
    "no token": await postAsClient(service, "token", app, { ...REQUEST, scope: "admin" }),
    "wrong secret": await postAsClient(service, "token", { ...app, clientSecret: "x" }, REQUEST),
    "no grant type": await postAsClient(service, "token", app, {}),
    introspect: await postAsClient(service, "introspect", app, { token: accessToken }),
    "introspect nothing": await postAsClient(service, "introspect", app, { token: "x" }),
    revoke: await postAsClient(service, "revoke", app, { token: accessToken }),
    "revoke nothing": await postAsClient(service, "revoke", app, {}),
    par: await postAsClient(service, "par", app, {}),
    "another method": await fetch(url),
    "an unknown path": await fetch(`${service.url}/oauth/unknown`),
    "no authorization request": await fetch(`${service.url}/oauth/authorize`),
  };
  for (const [name, { headers }] of Object.entries(responses)) {
    t.regex(headers.get("cache-control") ?? "", /no-store/, name);
    // RFC 6749 §5.1 requires it of token responses.
    if (/token|secret|grant type/.test(name)) t.is(headers.get("pragma"), "no-cache", name);
  }
});

const EVIL = "https://evil.example/";
const UNKNOWN_CODE = { code: "x", code_verifier: "x".repeat(43), redirect_uri: "https://a.example/" };
const ERRORS: [what: string, fields: Fields, status: number, error: string][] = [
  ["no grant type", {}, 400, "invalid_request"],
  ["an empty grant type", { grant_type: "" }, 400, "invalid_request"],
  ["an unknown scope", { ...REQUEST, scope: "admin:all" }, 400, "invalid_scope"],
  ["a known and an unknown scope", { ...REQUEST, scope: "links:read admin:all" }, 400, "invalid_scope"],
  ["an unknown resource", { ...REQUEST, resource: EVIL }, 400, "invalid_target"],
  ["two resources", { ...REQUEST, resource: [service.urls.api, service.urls.mcp] }, 400, "invalid_target"],
  ["an unknown code", { grant_type: "authorization_code", ...UNKNOWN_CODE }, 400, "invalid_grant"],
  ["an unknown refresh token", { grant_type: "refresh_token", refresh_token: "lgr_x" }, 400, "invalid_grant"],
  ["no refresh token", { grant_type: "refresh_token" }, 400, "invalid_request"],
  ["a repeated grant type", { grant_type: ["client_credentials", "password"] }, 400, "invalid_request"],
  ["a repeated scope", { ...REQUEST, scope: ["links:read", "links:read"] }, 400, "invalid_request"],
];

for (const [what, fields, status, error] of ERRORS)
  test(`a token request with ${what} gets ${status} ${error}`, async (t) => {
    const answer = await postAsClient(service, "token", app, fields);
    t.is(answer.status, status);
    t.regex(answer.headers.get("content-type") ?? "", /^application\/json/);
    t.is(answer.body.error, error);
    t.is(typeof answer.body.error_description, "string");
    t.notRegex(answer.text, /stack|node_modules|select |\.ts:/i);
  });

test("a repeated parameter is rejected at each endpoint, as is a request without a token", async (t) => {
  const token = await service.token(app);
  for (const [endpoint, fields] of [
    ["revoke", {}],
    ["revoke", { token: "" }],
    ["introspect", {}],
    ["revoke", { token: [token, token] }],
    ["introspect", { token: [token, "x"] }],
    ["introspect", { token, token_type_hint: ["access_token", "access_token"] }],
    ["par", { response_type: ["code", "code"] }],
    ["token", { ...REQUEST, client_id: [app.clientId, app.clientId] }],
    ["token", { grant_type: "refresh_token", refresh_token: ["a", "b"] }],
  ] as [string, Fields][]) {
    const answer = postAsClient(service, endpoint, app, fields);
    t.is(await outcomeOf(answer), "400 invalid_request", JSON.stringify([endpoint, fields]));
  }
  t.true(await isAcceptedByApi(service, token));
});

const requestOwn = (fields: Fields = {}) => postAsClient(service, "token", app, { ...REQUEST, ...fields });
const introspect = async (token: unknown) =>
  (await postAsClient(service, "introspect", app, { token: String(token) })).body;

test("the response to client credentials has neither a refresh token nor an id_token", async (t) => {
  for (const [scope, granted] of [
    [undefined, "links:read links:write domains:read domains:write webhooks:read webhooks:write"],
    ["openid offline_access links:read", "links:read"],
  ] as const) {
    const { status, body } = await requestOwn({ scope });
    t.is(status, 200, String(scope));
    t.deepEqual(Object.keys(body).sort(), ["access_token", "expires_in", "scope", "token_type"]);
    t.like(body, { token_type: "Bearer", expires_in: 3600, scope: granted });
  }
});

test("a token has the canonical audience of the resource in the request, or that of both", async (t) => {
  for (const [resource, audience] of [
    [undefined, service.url],
    ["", service.url],
    [`${service.url}/mcp`, `${service.url}/mcp`],
    [`${service.url.toUpperCase()}/v1/`, `${service.url}/v1`],
  ] as const)
    t.is((await introspect((await requestOwn({ resource })).body.access_token)).aud, audience, resource);
});

const GRANT_TYPES = [
  ...["password", "implicit", "CLIENT_CREDENTIALS", "client_credentials ", "__proto__"],
  "urn:ietf:params:oauth:grant-type:token-exchange",
];

for (const grant_type of GRANT_TYPES)
  test(`the grant type ${JSON.stringify(grant_type)} is rejected with unsupported_grant_type`, async (t) => {
    const { username, password } = user;
    const answer = postAsClient(service, "token", app, { grant_type, username, password });
    t.is(await outcomeOf(answer), "400 unsupported_grant_type");
  });

const MALFORMED: Record<string, string | Buffer> = {
  "60 KB of data": `grant_type=client_credentials&x=${"x".repeat(60_000)}`,
  "2 MB of data": `x=${"x".repeat(2_000_000)}`,
  "deeply nested names": `grant_type${"[a]".repeat(5000)}=x`,
  "prototype property names": "__proto__[grant_type]=client_credentials&constructor=x&toString=y",
  "invalid UTF-8": Buffer.from([0x67, 0x3d, 0xff, 0xfe, 0x00, 0x80]),
  "invalid percent escapes": "grant_type=%&scope=%zz&client_id=%c3%28",
  "NUL characters": "grant_type=client_credentials%00&scope=%00&client_id=%00",
};

for (const [what, body] of Object.entries(MALFORMED))
  for (const endpoint of ENDPOINTS)
    test(`a body with ${what} gets a 4xx error at ${endpoint}`, async (t) => {
      const headers = ["authorization", basic(app).authorization, "content-type", FORM_TYPE];
      const answer = await sendRaw(service.url, `/oauth/${endpoint}`, { method: "POST", headers, body });
      t.true(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text}`);
      t.is(typeof JSON.parse(answer.text).error, "string");
    });

test("a token is rejected wherever another kind of token is expected", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const unredeemed = await codeFor(service, app, user);
  for (const secret of [accessToken, own, unredeemed, app.clientSecret])
    t.is((await refresh(service, app, secret)).body.error, "invalid_grant");
  for (const secret of [accessToken, own, refreshToken, app.clientSecret])
    t.is((await redeemCode(service, app, secret)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, unredeemed)).status, 200);
});

test("tokens, codes, ids and secrets are long and random, and use only URL-safe characters", async (t) => {
  const { accessToken, refreshToken, code } = await runCodeFlow(service, app, user);
  for (const token of [accessToken, await service.token(app)]) t.regex(token, /^lga_[A-Za-z0-9_-]{43,}$/);
  t.regex(refreshToken, /^lgr_[A-Za-z0-9_-]{43,}$/);
  for (const token of [accessToken, refreshToken])
    t.true(Math.abs(Date.now() - Number.parseInt(token.slice(4, 13), 36)) < 60_000, "it was issued now");
  t.regex(code, /^[A-Za-z0-9_-]{43,}$/);
  t.regex(app.clientId, /^lgc_[A-Za-z0-9_-]{22,}$/);
  t.regex(app.clientSecret, /^lgs_[A-Za-z0-9_-]{43,}$/);
  const tokens = await Promise.all(Array.from({ length: 200 }, () => service.token(app)));
  t.is(new Set(tokens.map((token) => token.slice(13, 25))).size, 200, "random from the end of the time on");
});
