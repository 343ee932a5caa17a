import test from "ava";
import {
  basic,
  createApp,
  type Fields,
  formOf,
  isAcceptedByApi,
  postAsClient,
  read,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const url = `${service.url}/oauth/token`;
const REQUEST = { grant_type: "client_credentials" };
test.after.always(() => service.close());

const JSON_TYPE = "application/json";

for (const method of ["GET", "PUT", "PATCH", "DELETE", "HEAD"]) {
  for (const endpoint of ["token", "revoke", "introspect", "par"]) {
    test(`${method} is rejected at ${endpoint}`, async (t) => {
      const query = formOf({ ...REQUEST, client_id: app.clientId, client_secret: app.clientSecret });
      const answer = await fetch(`${service.url}/oauth/${endpoint}?${query}`, { method });
      t.is(answer.status, 405);
      t.regex(answer.headers.get("allow") ?? "", /POST/);
    });
  }
}

const INVALID_BODIES: [what: string, type: string, body: string][] = [
  ["JSON", JSON_TYPE, JSON.stringify(REQUEST)],
  ["JSON sent as text", "text/plain", JSON.stringify(REQUEST)],
  ["a form sent as text", "text/plain", "grant_type=client_credentials"],
  ["a form without a content type", "", "grant_type=client_credentials"],
  [
    "multipart",
    "multipart/form-data; boundary=x",
    '--x\r\nContent-Disposition: form-data; name="grant_type"\r\n\r\nclient_credentials\r\n--x--',
  ],
  ["XML", "application/xml", "<grant_type>client_credentials</grant_type>"],
];

for (const [what, type, body] of INVALID_BODIES) {
  test(`a token request in the form of ${what} is rejected`, async (t) => {
    const headers = ["authorization", basic(app).authorization, ...(type ? ["content-type", type] : [])];
    const answer = await sendRaw(service.url, "/oauth/token", { method: "POST", headers, body });
    t.is(answer.status, 400);
    t.is(JSON.parse(answer.text).error, "invalid_request");
  });
}

test("parameters in the query are ignored", async (t) => {
  const answer = await read(postForm(`${url}?grant_type=client_credentials`, {}, basic(app)));
  t.is(answer.status, 400);
  t.is(answer.body.error, "invalid_request");
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

const ERRORS: [what: string, fields: Fields, status: number, error: string][] = [
  ["no grant type", {}, 400, "invalid_request"],
  ["an empty grant type", { grant_type: "" }, 400, "invalid_request"],
  ["an unknown scope", { ...REQUEST, scope: "admin:all" }, 400, "invalid_scope"],
  ["an unknown resource", { ...REQUEST, resource: "https://evil.example/" }, 400, "invalid_target"],
  [
    "an unknown code",
    {
      grant_type: "authorization_code",
      code: "x",
      code_verifier: "x".repeat(43),
      redirect_uri: "https://a.example/",
    },
    400,
    "invalid_grant",
  ],
  ["an unknown refresh token", { grant_type: "refresh_token", refresh_token: "lgr_x" }, 400, "invalid_grant"],
  ["no refresh token", { grant_type: "refresh_token" }, 400, "invalid_request"],
  [
    "a repeated grant type",
    { grant_type: ["client_credentials", "client_credentials"] },
    400,
    "invalid_request",
  ],
  ["a repeated scope", { ...REQUEST, scope: ["links:read", "links:read"] }, 400, "invalid_request"],
];

for (const [what, fields, status, error] of ERRORS) {
  test(`a token request with ${what} gets ${status} ${error}`, async (t) => {
    const answer = await postAsClient(service, "token", app, fields);
    t.is(answer.status, status);
    t.regex(answer.headers.get("content-type") ?? "", /^application\/json/);
    t.is(answer.body.error, error);
    t.is(typeof answer.body.error_description, "string");
    t.notRegex(answer.text, /stack|node_modules|select |\.ts:/i);
  });
}

test("a repeated parameter is rejected at each endpoint", async (t) => {
  const token = await service.token(app);
  for (const [endpoint, fields] of [
    ["revoke", { token: [token, token] }],
    ["introspect", { token: [token, "x"] }],
    ["introspect", { token, token_type_hint: ["access_token", "access_token"] }],
    ["par", { response_type: ["code", "code"] }],
    ["token", { ...REQUEST, client_id: [app.clientId, app.clientId] }],
    ["token", { grant_type: "refresh_token", refresh_token: ["a", "b"] }],
  ] as [string, Fields][]) {
    const { status, body } = await postAsClient(service, endpoint, app, fields);
    t.is(status, 400, JSON.stringify([endpoint, fields]));
    t.is(body.error, "invalid_request", endpoint);
  }
  t.true(await isAcceptedByApi(service, token));
});

const GRANT_TYPES = [
  "password",
  "implicit",
  "urn:ietf:params:oauth:grant-type:device_code",
  "urn:ietf:params:oauth:grant-type:token-exchange",
  "urn:openid:params:grant-type:ciba",
  "CLIENT_CREDENTIALS",
  "client_credentials ",
  "__proto__",
  "constructor",
];

for (const grant_type of GRANT_TYPES) {
  test(`the grant type ${JSON.stringify(grant_type)} is rejected with unsupported_grant_type`, async (t) => {
    const { username, password } = user;
    const { status, body } = await postAsClient(service, "token", app, { grant_type, username, password });
    t.is(status, 400);
    t.is(body.error, "unsupported_grant_type");
  });
}

for (const grant_type of ["client_credentials", "authorization_code"]) {
  test(`the dashboard's public client can't use ${grant_type}`, async (t) => {
    const { status, body } = await read(postForm(url, { grant_type, client_id: "dashboard", code: "x" }));
    t.is(status, 400);
    t.is(body.error, "unauthorized_client");
  });
}
