import { createHmac } from "node:crypto";
import test from "ava";
import * as oidc from "openid-client";
import { discover } from "../harness/flow.ts";
import {
  type Answer,
  basic,
  codeFor,
  createApp,
  type Fields,
  formOf,
  newTokens,
  opensApi,
  read,
  redeemCode,
} from "../harness/oauth.ts";
import { postForm, startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await service.createOrganization();
test.after.always(() => service.close());

const REQUESTS: Record<string, Fields> = {
  token: { grant_type: "client_credentials" },
  revoke: { token: "lga_x" },
  introspect: { token: "lga_x" },
  par: { response_type: "code" },
};

/** Asks an endpoint with other credentials than the right ones. */
function askWith(endpoint: string, headers: object, fields: Fields = {}): Promise<Answer> {
  return read(
    postForm(`${service.url}/oauth/${endpoint}`, formOf({ ...REQUESTS[endpoint], ...fields }), headers),
  );
}

const { clientId, clientSecret } = app;
const basicOf = (id: string, secret: string) => basic({ clientId: id, clientSecret: secret });

const CREDENTIALS: [what: string, headers: object, fields: Fields][] = [
  ["no credentials", {}, {}],
  ["a client id alone", {}, { client_id: clientId }],
  ["an empty secret", {}, { client_id: clientId, client_secret: "" }],
  ["another client's secret", basicOf(clientId, other.clientSecret), {}],
  ["a shortened secret", basicOf(clientId, clientSecret.slice(0, -1)), {}],
  ["a lengthened secret", basicOf(clientId, `${clientSecret}A`), {}],
  ["a secret with a NUL", {}, { client_id: clientId, client_secret: `${clientSecret}\u0000` }],
  ["a secret with a space", {}, { client_id: clientId, client_secret: ` ${clientSecret}` }],
  ["a secret in capitals", basicOf(clientId, clientSecret.toUpperCase()), {}],
  ["the text that stands for the secret in the storage", basicOf(clientId, "kept-as-a-hash"), {}],
  ["a client id in capitals", basicOf(clientId.toUpperCase(), clientSecret), {}],
  ["a client id with a NUL", {}, { client_id: `${clientId}\u0000`, client_secret: clientSecret }],
  ["a client id with a space behind it", {}, { client_id: `${clientId} `, client_secret: clientSecret }],
  ["a client id with a space, in the header", basicOf(`${clientId} `, clientSecret), {}],
  ["a client id of other letters", {}, { client_id: "ĺgc_é", client_secret: clientSecret }],
  ["an unknown client", basicOf("lgc_nobody", clientSecret), {}],
  ["a secret of 50 kB", {}, { client_id: clientId, client_secret: "x".repeat(50_000) }],
  ["the public client with a secret", basicOf("dashboard", "x"), {}],
  ["a bearer token", { authorization: "Bearer lga_x" }, {}],
  ["Basic with nothing", { authorization: "Basic" }, {}],
  ["Basic that is no base64", { authorization: "Basic !!!!" }, {}],
  ["Basic without a colon", { authorization: `Basic ${Buffer.from(clientId).toString("base64")}` }, {}],
  ["Basic with half an escape", basicOf(clientId, "%zz"), {}],
  ["Basic with a NUL", basicOf(`${clientId}\u0000`, clientSecret), {}],
];

for (const [what, headers, fields] of CREDENTIALS) {
  for (const endpoint of Object.keys(REQUESTS)) {
    test(`sec 52, 58, 79: ${what} opens nothing at ${endpoint}`, async (t) => {
      const { status, body, text } = await askWith(endpoint, headers, fields);
      t.true(status === 401 || status === 400, text);
      t.is(body.error, status === 401 ? "invalid_client" : "invalid_request");
      t.false("access_token" in body);
      t.false("active" in body);
    });
  }
}

for (const [endpoint, fields] of Object.entries(REQUESTS)) {
  test(`sec 53: a secret in the address is not read at ${endpoint}`, async (t) => {
    const query = formOf({ client_id: clientId, client_secret: clientSecret });
    const url = `${service.url}/oauth/${endpoint}?${query}`;
    const { status } = await read(postForm(url, formOf(fields)));
    t.true(status === 400 || status === 401);
    const half = await read(postForm(url, formOf({ ...fields, client_id: clientId })));
    t.is(half.status, 401);
  });

  test(`sec 54: two ways of authentication at once are invalid_request at ${endpoint}`, async (t) => {
    for (const secret of [clientSecret, "wrong"]) {
      const { status, body } = await askWith(endpoint, basic(app), {
        client_id: clientId,
        client_secret: secret,
      });
      t.is(status, 400);
      t.is(body.error, "invalid_request");
    }
  });

  test(`sec 54: the header and the body name the same client at ${endpoint}, or are refused`, async (t) => {
    const { status, body } = await askWith(endpoint, basic(app), { client_id: other.clientId });
    t.is(status, 400);
    t.is(body.error, "invalid_request");
    const same = await askWith(endpoint, basic(app), { client_id: clientId });
    t.not(same.status, 401);
    t.not(same.body.error, "invalid_client");
  });

  test(`sec 44, 56: an unknown client and a wrong secret look the same at ${endpoint}`, async (t) => {
    for (const ways of [
      [basicOf(clientId, "wrong"), basicOf("lgc_nobody", "wrong")].map((headers) => ({
        headers,
        fields: {},
      })),
      [clientId, "lgc_nobody"].map((client_id) => ({
        headers: {},
        fields: { client_id, client_secret: "wrong" },
      })),
    ]) {
      const answers = [];
      for (const { headers, fields } of ways) answers.push(await askWith(endpoint, headers, fields));
      const [known, unknown] = answers.map(({ status, text, headers }) => ({
        status,
        text,
        challenge: headers.get("www-authenticate"),
      }));
      t.deepEqual(known, unknown);
      t.is(known?.status, 401);
    }
  });

  test(`sec 44: a wrong secret in the header is challenged with Basic at ${endpoint}`, async (t) => {
    const { status, headers, body } = await askWith(endpoint, basicOf(clientId, "wrong"));
    t.is(status, 401);
    t.is(body.error, "invalid_client");
    t.regex(headers.get("www-authenticate") ?? "", /^Basic realm=/);
  });
}

test("sec 79: introspection without credentials is a 401 with a Basic challenge", async (t) => {
  for (const fields of [{}, { token_type_hint: "access_token" }, { token: "a.b.c" }]) {
    const { status, headers, body } = await askWith("introspect", {}, fields);
    t.is(status, 401);
    t.is(body.error, "invalid_client");
    t.is(headers.get("www-authenticate"), `Basic realm="${service.url}"`);
    t.regex(headers.get("cache-control") ?? "", /no-store/);
  }
});

test("sec 79: introspection without credentials and token is a 401 as well", async (t) => {
  const { status, body } = await read(postForm(`${service.url}/oauth/introspect`, {}));
  t.is(status, 401);
  t.is(body.error, "invalid_client");
});

test("sec 55: the secret is sent in the header, raw or form-encoded, or in the body", async (t) => {
  const percent = (text: string) => text.replaceAll("_", "%5F").replaceAll("-", "%2D");
  for (const [headers, fields] of [
    [basic(app), {}],
    [basicOf(percent(clientId), percent(clientSecret)), {}],
    [{ authorization: basic(app).authorization.replace("Basic", "basic") }, {}],
    [{}, { client_id: clientId, client_secret: clientSecret }],
  ] as [object, Fields][]) {
    t.is((await askWith("token", headers, fields)).status, 200, JSON.stringify(headers));
  }
});

test("sec 55: openid-client authenticates either way", async (t) => {
  for (const method of [oidc.ClientSecretBasic, oidc.ClientSecretPost]) {
    const config = await oidc.discovery(new URL(service.url), clientId, {}, method(clientSecret), {
      execute: [oidc.allowInsecureRequests],
    });
    t.regex((await oidc.clientCredentialsGrant(config)).access_token, /^lga_/);
  }
  t.truthy((await discover(service, app)).serverMetadata().token_endpoint);
});

const part = (value: object | string) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

function assertion(alg: string, key?: string): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: clientId, sub: clientId, aud: service.url, jti: "x", iat: now, exp: now + 60 };
  const signed = `${part({ alg })}.${part(claims)}`;
  return `${signed}.${key ? createHmac("sha256", key).update(signed).digest("base64url") : ""}`;
}

const ASSERTIONS = {
  none: assertion("none"),
  "the secret": assertion("HS256", clientSecret),
  "the stored text": assertion("HS256", "kept-as-a-hash"),
};

for (const [what, client_assertion] of Object.entries(ASSERTIONS)) {
  test(`sec 59: an assertion signed with ${what} is no authentication`, async (t) => {
    for (const endpoint of Object.keys(REQUESTS)) {
      const { status, body } = await askWith(
        endpoint,
        {},
        {
          client_id: clientId,
          client_assertion,
          client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        },
      );
      t.true(status === 401 || status === 400);
      t.regex(String(body.error), /^invalid_(client|request)$/);
    }
  });
}

test("sec 52: neither a code nor a refresh token is redeemed without the secret", async (t) => {
  const code = await codeFor(service, app, user);
  const bare = { ...app, clientSecret: "" };
  t.true([400, 401].includes((await redeemCode(service, bare, code)).status));
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  const fields = { grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId };
  t.is((await askWith("token", {}, fields)).status, 401);
  t.is((await askWith("revoke", {}, { token: accessToken, client_id: clientId })).status, 401);
  t.true(await opensApi(service, accessToken));
});

test("the same name in other letters is no endpoint", async (t) => {
  for (const path of ["/OAUTH/TOKEN", "/oauth/token/", "/oauth/Token", "/oauth//token", "/oauth/%74oken"]) {
    const { status } = await read(
      postForm(service.url + path, { grant_type: "client_credentials" }, basic(app)),
    );
    t.is(status, 404, path);
  }
});
