import test from "ava";
import {
  basic,
  codeFor,
  createApp,
  type Fields,
  formOf,
  isAcceptedByApi,
  postAsClient,
  read,
  redeemCode,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { bearer, postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);

test.after.always(() => service.close());

const url = `${service.url}/oauth/token`;
const REQUEST = { grant_type: "client_credentials" };

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

const FORM_TYPE = "application/x-www-form-urlencoded";

const MALFORMED: Record<string, string | Buffer> = {
  "60 KB of data": `grant_type=client_credentials&x=${"x".repeat(60_000)}`,
  "2 MB of data": `x=${"x".repeat(2_000_000)}`,
  "100,000 parameters": Array.from({ length: 100_000 }, (_, index) => `a${index}=`).join("&"),
  "deeply nested names": `grant_type${"[a]".repeat(5000)}=x`,
  "prototype property names": "__proto__[grant_type]=client_credentials&constructor=x&toString=y",
  "invalid UTF-8": Buffer.from([0x67, 0x3d, 0xff, 0xfe, 0x00, 0x80]),
  "invalid percent escapes": "grant_type=%&scope=%zz&client_id=%c3%28",
  "NUL characters": "grant_type=client_credentials%00&scope=%00&client_id=%00",
  "a NUL in a refresh token": "grant_type=refresh_token&refresh_token=lgr_%00",
  "a NUL in a code": `grant_type=authorization_code&code=%00&code_verifier=${"x".repeat(43)}&redirect_uri=%00`,
};

for (const [what, body] of Object.entries(MALFORMED)) {
  for (const endpoint of ["token", "revoke", "introspect", "par"]) {
    test(`a body with ${what} gets a 4xx error at ${endpoint}`, async (t) => {
      const headers = ["authorization", basic(app).authorization, "content-type", FORM_TYPE];
      const answer = await sendRaw(service.url, `/oauth/${endpoint}`, { method: "POST", headers, body });
      t.true(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text}`);
      t.is(typeof JSON.parse(answer.text).error, "string");
    });
  }
}

test("a charset other than UTF-8 is rejected", async (t) => {
  const headers = ["authorization", basic(app).authorization, "content-type", `${FORM_TYPE}; charset=utf-7`];
  const answer = await sendRaw(service.url, "/oauth/token", {
    method: "POST",
    headers,
    body: "grant_type=x",
  });
  t.true(answer.status >= 400 && answer.status < 500);
});

test("a token is rejected wherever another kind of token is expected", async (t) => {
  const { accessToken, refreshToken, code } = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const unredeemed = await codeFor(service, app, user);
  for (const secret of [refreshToken, code, unredeemed, app.clientSecret, app.clientId]) {
    t.false(await isAcceptedByApi(service, secret));
  }
  for (const secret of [accessToken, own, unredeemed, app.clientSecret]) {
    t.is((await refresh(service, app, secret)).body.error, "invalid_grant");
  }
  for (const secret of [accessToken, own, refreshToken, app.clientSecret]) {
    t.is((await redeemCode(service, app, secret)).body.error, "invalid_grant");
  }
  t.deepEqual((await postAsClient(service, "introspect", app, { token: unredeemed })).body, {
    active: false,
  });
  t.is((await postAsClient(service, "revoke", app, { token: unredeemed })).status, 200);
  t.is((await redeemCode(service, app, unredeemed)).status, 200);
});

test("a modified token is rejected", async (t) => {
  const token = await service.token(app);
  const swapped = token.replace(/[a-zA-Z](?=[^a-zA-Z]*$)/, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
  for (const changed of [
    swapped,
    token.toUpperCase(),
    token.slice(0, -1),
    `${token}A`,
    `${token}=`,
    token.slice(4),
  ]) {
    t.not(changed, token);
    t.false(await isAcceptedByApi(service, changed), changed);
    t.deepEqual((await postAsClient(service, "introspect", app, { token: changed })).body, { active: false });
  }
  for (const padded of [` ${token}`, `${token} `, `${token}\u0000`, `${token}\n`]) {
    t.deepEqual(
      (await postAsClient(service, "introspect", app, { token: padded })).body,
      { active: false },
      padded,
    );
  }
  t.is((await fetch(`${service.url}/v1/organization`, { headers: bearer(token) })).status, 200);
});

test("tokens, codes, ids and secrets are long and use only URL-safe characters", async (t) => {
  const { accessToken, refreshToken, code } = await runCodeFlow(service, app, user);
  const patterns: [string, RegExp][] = [
    [accessToken, /^lga_[A-Za-z0-9_-]{43,}$/],
    [await service.token(app), /^lga_[A-Za-z0-9_-]{43,}$/],
    [refreshToken, /^lgr_[A-Za-z0-9_-]{43,}$/],
    [code, /^[A-Za-z0-9_-]{43,}$/],
    [app.clientId, /^lgc_[A-Za-z0-9_-]{22,}$/],
    [app.clientSecret, /^lgs_[A-Za-z0-9_-]{43,}$/],
  ];
  for (const [value, pattern] of patterns) t.regex(value, pattern);
});

test("tokens are random from the end of their time on", async (t) => {
  const prefixes = new Set<string>();
  for (let batch = 0; batch < 20; batch++) {
    const tokens = await Promise.all(Array.from({ length: 50 }, () => service.token(app)));
    for (const token of tokens) prefixes.add(token.slice(13, 25));
  }
  t.is(prefixes.size, 1000);
});
