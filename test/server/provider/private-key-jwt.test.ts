import { generateKeyPairSync } from "node:crypto";
import test from "ava";
import { type CryptoKey, decodeJwt, exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import { parsePublicKey } from "../../../server/credentials/public-keys.ts";
import { addKey, type KeyPair, signAssertion, withAssertion } from "../../harness/clients/client-key.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  basic,
  createApp,
  type Fields,
  isAcceptedByApi,
  pkce,
  read,
} from "../../harness/clients/oauth.ts";
import { postForm, startTestService, type TestOrganization } from "../../harness/service.ts";

const service = await startTestService();
const { clients } = service.storage;
test.after.always(() => service.close());

const TOKEN_ENDPOINT = `${service.url}/oauth/token`;

type Rest<F> = F extends (service: never, ...rest: infer R) => unknown ? R : never;

/** Creates an organization whose client has a key. */
async function createKeyed(alg = "ES256") {
  const created = await createApp(service);
  const pair = await generateKeyPair(alg);
  return { ...created, pair, keyId: await addKey(service, created.app, pair) };
}

const now = () => Math.floor(Date.now() / 1000);

const sign = (...args: Rest<typeof signAssertion>) => signAssertion(service, ...args);

const request = (assertion: string, changes?: Fields) =>
  read(postForm(TOKEN_ENDPOINT, withAssertion(assertion, changes)));

for (const alg of ["RS256", "PS256", "ES256", "ES384", "EdDSA"]) {
  test(`a client with an ${alg} key gets, uses and revokes a token`, async (t) => {
    const { app, pair } = await createKeyed(alg);
    const config = await oidc.discovery(
      new URL(service.url),
      app.clientId,
      undefined,
      oidc.PrivateKeyJwt(pair.privateKey),
      { execute: [oidc.allowInsecureRequests] },
    );
    const { access_token } = await oidc.clientCredentialsGrant(config, { scope: "links:read" });
    t.true(await isAcceptedByApi(service, access_token));
    t.like(await oidc.tokenIntrospection(config, access_token), { active: true, scope: "links:read" });
    await oidc.tokenRevocation(config, access_token);
    t.false(await isAcceptedByApi(service, access_token));
  });
}

test("the code flow, a pushed request and the refresh work with a key", async (t) => {
  const { app, user, pair } = await createKeyed();
  const config = await oidc.discovery(
    new URL(service.url),
    app.clientId,
    undefined,
    oidc.PrivateKeyJwt(pair.privateKey),
    { execute: [oidc.allowInsecureRequests] },
  );
  const { verifier, challenge } = await pkce();
  const url = await oidc.buildAuthorizationUrlWithPAR(config, {
    redirect_uri: REDIRECT_URI,
    scope: "links:write",
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "a-state",
  });
  const callback = await allow(service, user, url.href);
  const tokens = await oidc.authorizationCodeGrant(config, callback, {
    pkceCodeVerifier: verifier,
    expectedState: "a-state",
  });
  t.true(await isAcceptedByApi(service, tokens.access_token));
  const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token as string);
  t.true(await isAcceptedByApi(service, refreshed.access_token));
  // As for every confidential client, early in its life the refresh token stays the same.
  t.is(refreshed.refresh_token, tokens.refresh_token);
});

test("client_id may be sent beside the assertion, and must be the same client", async (t) => {
  const { app, pair } = await createKeyed();
  const other = await createKeyed();
  t.is((await request(await sign(app, pair), { client_id: app.clientId })).status, 200);
  const mixed = await request(await sign(app, pair), { client_id: other.app.clientId });
  t.is(mixed.status, 401);
  t.is(mixed.body.error, "invalid_client");
});

test("the token endpoint is accepted as audience, and a list of one", async (t) => {
  const { app, pair } = await createKeyed();
  t.is((await request(await sign(app, pair, { aud: TOKEN_ENDPOINT }))).status, 200);
  t.is((await request(await sign(app, pair, { aud: [service.url] }))).status, 200);
});

test("the issuer, the token endpoint and itself are audiences of the pushed authorization request endpoint", async (t) => {
  const { app, pair } = await createKeyed();
  const { challenge } = await pkce();
  const par = `${service.url}/oauth/par`;
  const push = async (aud: string) => {
    const fields = {
      grant_type: undefined,
      client_id: app.clientId,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      code_challenge: challenge,
      code_challenge_method: "S256",
    };
    return read(postForm(par, withAssertion(await sign(app, pair, { aud }), fields)));
  };
  for (const audience of [service.url, TOKEN_ENDPOINT, par])
    t.is((await push(audience)).status, 201, audience);
  t.is((await push(`${service.url}/oauth/authorize`)).status, 401);
  t.is((await request(await sign(app, pair, { aud: par }))).status, 401, "elsewhere it is none");
});

test("the key may have any name in the assertion, and both keys of a rotation work", async (t) => {
  const { app, pair, keyId } = await createKeyed();
  const next = await generateKeyPair("ES256");
  await addKey(service, app, next);
  t.is((await request(await sign(app, pair, {}, { kid: "mine" }))).status, 200);
  t.is((await request(await sign(app, next))).status, 200);
  t.true(await clients.removeKey(app.id, keyId, { compromised: false }, OPERATOR));
  t.is((await request(await sign(app, pair))).status, 401);
  t.is((await request(await sign(app, next))).status, 200);
});

const REFUSED: [
  name: string,
  assertion: (app: TestOrganization, pair: KeyPair) => Promise<string>,
  RegExp,
][] = [
  ["another key", async (app) => sign(app, await generateKeyPair("ES256")), /no key of the client/],
  [
    "another audience",
    (app, pair) => sign(app, pair, { aud: "https://other.example" }),
    /aud has an unexpected value/,
  ],
  [
    "the API as audience",
    (app, pair) => sign(app, pair, { aud: `${service.url}/v1` }),
    /aud has an unexpected value/,
  ],
  [
    "another audience as well",
    (app, pair) => sign(app, pair, { aud: [service.url, "https://other.example"] }),
    /aud must be a single value/,
  ],
  ["no audience", (app, pair) => sign(app, pair, { aud: undefined }), /aud is missing/],
  ["another issuer", (app, pair) => sign(app, pair, { iss: "https://other.example" }), /./],
  ["another subject", (app, pair) => sign(app, pair, { sub: "lgc_AAAAAAAAAAAAAAAAAAAAAA" }), /./],
  ["expired", (app, pair) => sign(app, pair, { exp: now() - 60 }), /has expired/],
  ["no expiry", (app, pair) => sign(app, pair, { exp: undefined }), /exp is missing/],
  ["no time of issue", (app, pair) => sign(app, pair, { iat: undefined }), /iat is missing/],
  ["too old", (app, pair) => sign(app, pair, { iat: now() - 700 }), /is too old/],
  [
    "issued in the future",
    (app, pair) => sign(app, pair, { iat: now() + 90, exp: now() + 120 }),
    /in the future/,
  ],
  ["not valid yet", (app, pair) => sign(app, pair, { nbf: now() + 90 }), /is not valid yet/],
  ["no id", (app, pair) => sign(app, pair, { jti: undefined }), /jti is missing/],
];

for (const [name, assertion, description] of REFUSED) {
  test(`an assertion is refused: ${name}`, async (t) => {
    const { app, pair } = await createKeyed();
    const { status, body } = await request(await assertion(app, pair), { client_id: app.clientId });
    t.is(status, 401);
    t.is(body.error, "invalid_client");
    t.regex(String(body.error_description), description);
  });
}

test("an unsigned assertion and one signed with the public key as a secret are refused", async (t) => {
  const { app, pair } = await createKeyed("RS256");
  const [, payload] = (await sign(app, pair, {}, { alg: "RS256" })).split(".");
  const header = Buffer.from('{"alg":"none"}').toString("base64url");
  const jwk = JSON.stringify(await exportJWK(pair.publicKey));
  const symmetric = await new SignJWT(decodeJwt(`a.${payload}.a`))
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(jwk));
  for (const assertion of [`${header}.${payload}.`, symmetric]) {
    const { status, body } = await request(assertion);
    t.is(status, 401, String(body.error_description));
  }
});

test("a key that names its algorithm verifies no other", async (t) => {
  const { app } = await createApp(service);
  const { publicKey, privateKey } = await generateKeyPair("PS256", { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), alg: "PS256" };
  const added = await clients.addKey(app.id, await parsePublicKey(JSON.stringify(jwk)), OPERATOR);
  t.is(typeof added, "object");
  const [ps256, rs256] = await Promise.all(
    ["PS256", "RS256"].map(async (alg) => {
      const key = await importJWK(await exportJWK(privateKey), alg);
      const pair = { publicKey, privateKey: key as CryptoKey };
      return request(await sign(app, pair, {}, { alg }));
    }),
  );
  t.is(ps256?.status, 200);
  t.is(rs256?.status, 401);
});

test("an assertion beside a secret is refused, in the body and in the header", async (t) => {
  const { app, pair } = await createKeyed();
  const inBody = await request(await sign(app, pair), { client_secret: app.clientSecret });
  t.is(inBody.status, 400);
  const inHeader = await read(postForm(TOKEN_ENDPOINT, withAssertion(await sign(app, pair)), basic(app)));
  t.is(inHeader.status, 400);
});

test("malformed assertions are refused", async (t) => {
  const { app } = await createKeyed();
  for (const assertion of ["a", "a.b.c", "..", "a".repeat(5000)]) {
    const { status, body } = await request(assertion, { client_id: app.clientId });
    t.is(status, 401, assertion.slice(0, 10));
    t.is(body.error, "invalid_client");
  }
  t.is((await request("", { client_id: app.clientId })).body.error, "invalid_client");
  const { status, body } = await request("a.b.c", { client_assertion_type: "something else" });
  t.true(status === 400 || status === 401, JSON.stringify(body));
});

test("two assertions in one request are refused, and both can still be used", async (t) => {
  const { app, pair } = await createKeyed();
  const [one, other] = [await sign(app, pair), await sign(app, pair)];
  for (const client_assertion of [[one, other], `${one},${other}`, `${one} ${other}`]) {
    const { status } = await request("", { client_assertion, client_id: app.clientId });
    t.true(status === 400 || status === 401, String(status));
  }
  t.is((await request(one)).status, 200);
  t.is((await request(other)).status, 200);
});

test("a client without a key can't use an assertion, and is refused like one with another key", async (t) => {
  const [keyless, keyed] = [await createApp(service), await createKeyed()];
  const pair = await generateKeyPair("ES256");
  const unsigned = (token: string) =>
    `${Buffer.from('{"alg":"none"}').toString("base64url")}.${token.split(".")[1]}.`;
  for (const change of [(token: string) => token, unsigned]) {
    const [without, withAnother] = [
      await request(change(await sign(keyless.app, pair))),
      await request(change(await sign(keyed.app, pair))),
    ];
    t.is(without.status, 401);
    t.deepEqual(without.body, withAnother.body);
  }
});

test("of 20 concurrent uses of an assertion, one succeeds", async (t) => {
  const { app, pair } = await createKeyed();
  const assertion = await sign(app, pair);
  const answers = await Promise.all(Array.from({ length: 20 }, () => request(assertion)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array.from({ length: 19 }, () => 401)]);
  t.is((await request(assertion)).status, 401);
});

test("on the Free plan, a valid assertion gets unauthorized_client, and an invalid one invalid_client", async (t) => {
  const { app, pair } = await createKeyed();
  await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
  const valid = await request(await sign(app, pair));
  t.deepEqual([valid.status, valid.body.error], [400, "unauthorized_client"]);
  const invalid = await request(await sign(app, await generateKeyPair("ES256")));
  t.deepEqual([invalid.status, invalid.body.error], [401, "invalid_client"]);
});

test("without secrets, no string that was a secret is accepted, and client_secrets has no row", async (t) => {
  const { app, pair } = await createKeyed();
  const rotation = await clients.rotateSecret(app.id, { overlapMs: 3_600_000, compromised: false }, OPERATOR);
  const secrets = [app.clientSecret, rotation?.clientSecret as string, "kept-as-a-hash"];
  const fields = { grant_type: "client_credentials", client_id: app.clientId };
  const statuses = () =>
    Promise.all(
      secrets.flatMap((secret) => [
        postForm(TOKEN_ENDPOINT, { ...fields, client_secret: secret }),
        postForm(TOKEN_ENDPOINT, fields, basic({ ...app, clientSecret: secret })),
      ]),
    ).then((answers) => answers.map(({ status }) => status));
  t.deepEqual(await statuses(), [200, 200, 200, 200, 401, 401]);
  const token = await service.token(app);
  t.true(await clients.removeSecrets(app.id, OPERATOR));
  t.deepEqual(await statuses(), [401, 401, 401, 401, 401, 401]);
  t.deepEqual((await clients.findByOrganization(app.id))?.secrets, []);
  // Tokens stay valid, as after the end of any secret.
  t.true(await isAcceptedByApi(service, token));
  t.is((await request(await sign(app, pair))).status, 200);
  const created = await clients.rotateSecret(app.id, { overlapMs: 0, compromised: false }, OPERATOR);
  t.is(created?.previousExpiresAt, null);
  t.true(
    await isAcceptedByApi(
      service,
      await service.token({ ...app, clientSecret: created?.clientSecret as string }),
    ),
  );
});

test("removing a compromised key revokes every token of the client", async (t) => {
  const { app, pair, keyId } = await createKeyed();
  const { body } = await request(await sign(app, pair));
  t.true(await isAcceptedByApi(service, body.access_token as string));
  t.true(await clients.removeKey(app.id, keyId, { compromised: true }, OPERATOR));
  t.false(await isAcceptedByApi(service, body.access_token as string));
  t.true(await isAcceptedByApi(service, await service.token(app)));
});

test("of concurrent additions, a client keeps two keys", async (t) => {
  const { app } = await createApp(service);
  const keys = Array.from({ length: 6 }, () => generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey);
  const parsed = await Promise.all(
    keys.map((key) => parsePublicKey(JSON.stringify(key.export({ format: "jwk" })))),
  );
  const added = await Promise.all(parsed.map((key) => clients.addKey(app.id, key, OPERATOR)));
  t.is(added.filter((result) => result === "limit").length, 4);
  t.is((await clients.findKeys(app.clientId)).length, 2);
});
