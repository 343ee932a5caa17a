import test from "ava";
import { shareApp } from "../harness/clients/authorization.ts";
import { type Fields, formOf } from "../harness/clients/authorization-request.ts";
import { type Answer, basic, outcomeOf, read } from "../harness/clients/oauth.ts";
import { postForm } from "../harness/service.ts";

const { service, app } = await shareApp();
const other = await service.createOrganization();

const REQUESTS: Record<string, Fields> = {
  token: { grant_type: "client_credentials" },
  revoke: { token: "lga_x" },
  introspect: { token: "lga_x" },
  par: { response_type: "code" },
};

function postWith(endpoint: string, headers: object, fields: Fields = {}): Promise<Answer> {
  return read(
    postForm(`${service.url}/oauth/${endpoint}`, formOf({ ...REQUESTS[endpoint], ...fields }), headers),
  );
}

const { clientId, clientSecret } = app;
const basicOf = (id: string, secret: string) => basic({ clientId: id, clientSecret: secret });

const NO_COLON = `Basic ${Buffer.from(clientId).toString("base64")}`;

const INVALID_CREDENTIALS: [what: string, headers: object, fields: Fields][] = [
  ["no credentials", {}, {}],
  ["only a client id", {}, { client_id: clientId }],
  ["an empty secret", {}, { client_id: clientId, client_secret: "" }],
  ["another client's secret", basicOf(clientId, other.clientSecret), {}],
  ["a truncated secret", basicOf(clientId, clientSecret.slice(0, -1)), {}],
  ["a secret that has an extra character", basicOf(clientId, `${clientSecret}A`), {}],
  ["a secret that contains a NUL", {}, { client_id: clientId, client_secret: `${clientSecret}\u0000` }],
  ["the stored placeholder as the secret", basicOf(clientId, "kept-as-a-hash"), {}],
  ["an upper-case client id", basicOf(clientId.toUpperCase(), clientSecret), {}],
  ["an unknown client", basicOf("lgc_nobody", clientSecret), {}],
  ["a secret of 50 KB", {}, { client_id: clientId, client_secret: "x".repeat(50_000) }],
  ["a secret for the public client", basicOf("dashboard", "x"), {}],
  ["Basic credentials in invalid base64", { authorization: "Basic !!!!" }, {}],
  ["Basic credentials without a colon", { authorization: NO_COLON }, {}],
  ["an invalid percent escape in Basic credentials", basicOf(clientId, "%zz"), {}],
];

for (const [what, headers, fields] of INVALID_CREDENTIALS)
  for (const endpoint of Object.keys(REQUESTS))
    test(`a request with ${what} is rejected at ${endpoint}`, async (t) => {
      const { status, body, text } = await postWith(endpoint, headers, fields);
      t.true(status === 401 || status === 400, text);
      t.is(body.error, status === 401 ? "invalid_client" : "invalid_request");
      t.false("access_token" in body);
      t.false("active" in body);
    });

for (const [who, client_id] of [
  ["an organization's client", clientId],
  ["an unknown client", "lgc_unknown"],
] as const)
  test(`the authentication method none of ${who} is refused with the methods that it must use`, async (t) => {
    const { status, body } = await postWith("token", {}, { client_id });
    t.is(status, 401);
    t.is(
      body.error_description,
      "client authentication failed: confidential clients must use client_secret_basic, client_secret_post or private_key_jwt",
    );
    const wrong = await postWith("token", {}, { client_id, client_secret: "wrong" });
    t.is(wrong.body.error_description, "client authentication failed");
  });

for (const [endpoint, fields] of Object.entries(REQUESTS)) {
  test(`a secret in the query is ignored at ${endpoint}`, async (t) => {
    const query = formOf({ client_id: clientId, client_secret: clientSecret });
    const url = `${service.url}/oauth/${endpoint}?${query}`;
    const { status } = await read(postForm(url, formOf(fields)));
    t.true(status === 400 || status === 401);
    const withId = await read(postForm(url, formOf({ ...fields, client_id: clientId })));
    t.is(withId.status, 401);
  });

  test(`using two authentication methods is rejected with invalid_request at ${endpoint}`, async (t) => {
    for (const client_secret of [clientSecret, "wrong"]) {
      const answer = postWith(endpoint, basic(app), { client_id: clientId, client_secret });
      t.is(await outcomeOf(answer), "400 invalid_request");
    }
  });

  test(`different client ids in the header and the body are rejected at ${endpoint}`, async (t) => {
    const mixed = postWith(endpoint, basic(app), { client_id: other.clientId });
    t.is(await outcomeOf(mixed), "400 invalid_request");
    t.not((await postWith(endpoint, basic(app), { client_id: clientId })).status, 401);
  });

  test(`an unknown client and a wrong secret get identical responses at ${endpoint}, in the header with a challenge`, async (t) => {
    const inHeader = (client_id: string) => postWith(endpoint, basicOf(client_id, "wrong"));
    const inBody = (client_id: string) => postWith(endpoint, {}, { client_id, client_secret: "wrong" });
    for (const [send, expected] of [
      [inHeader, /^Basic realm=/],
      [inBody, /^$/],
    ] as const) {
      const [known, unknown] = [await send(clientId), await send("lgc_nobody")].map((answer) => ({
        outcome: `${answer.status} ${answer.body.error}`,
        text: answer.text,
        challenge: answer.headers.get("www-authenticate") ?? "",
      }));
      t.deepEqual(known, unknown);
      t.is(known?.outcome, "401 invalid_client");
      t.regex(known?.challenge ?? "", expected);
    }
  });
}

test("introspection without credentials gets 401 with a Basic challenge", async (t) => {
  for (const fields of [{}, { token: undefined }, { token: "a.b.c" }]) {
    const { status, headers } = await postWith("introspect", {}, fields);
    t.is(status, 401, JSON.stringify(fields));
    t.is(headers.get("www-authenticate"), `Basic realm="${service.url}"`, JSON.stringify(fields));
  }
});

test("the secret is accepted in the header, raw or form-encoded, and in the body", async (t) => {
  const percent = (text: string) => text.replaceAll("_", "%5F").replaceAll("-", "%2D");
  for (const [headers, fields] of [
    [basic(app), {}],
    [basicOf(percent(clientId), percent(clientSecret)), {}],
    [{ authorization: basic(app).authorization.replace("Basic", "basic") }, {}],
    [{}, { client_id: clientId, client_secret: clientSecret }],
  ] as [object, Fields][]) {
    t.is((await postWith("token", headers, fields)).status, 200, JSON.stringify(headers));
  }
});
