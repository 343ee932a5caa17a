import { sign as signBytes } from "node:crypto";
import test from "ava";
import type { CryptoKey } from "jose";
import { decodeJwt, exportJWK, generateKeyPair, importJWK, SignJWT, UnsecuredJWT } from "jose";
import * as oidc from "openid-client";
import { parsePublicKey } from "../../server/credentials/public-keys.ts";
import { discover } from "../harness/clients/authorization.ts";
import { authorizeUrl, createApp, type Fields } from "../harness/clients/authorization-request.ts";
import { addKey, signAssertion, withAssertion } from "../harness/clients/client-key.ts";
import { basic, isAcceptedByApi, outcomeOf, read } from "../harness/clients/oauth.ts";
import { now } from "../harness/clock.ts";
import { atOnce } from "../harness/database/storage.ts";
import { OPERATOR, postForm, startTestService } from "../harness/service.ts";

const service = await startTestService();
const { clients } = service.storage;

const TOKEN_ENDPOINT = `${service.url}/oauth/token`;

type Rest<F> = F extends (service: never, ...rest: infer R) => unknown ? R : never;

async function createKeyed(alg = "ES256") {
  const created = await createApp(service);
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...created, pair, keyId: await addKey(service, created.app, pair) };
}

const sign = (...args: Rest<typeof signAssertion>) => signAssertion(service, ...args);

const request = (assertion: string, changes?: Fields) =>
  read(postForm(TOKEN_ENDPOINT, withAssertion(assertion, changes)));

for (const alg of ["RS256", "PS256", "ES256", "ES384", "EdDSA"])
  test(`a client with an ${alg} key gets, uses and revokes a token`, async (t) => {
    const { app, pair } = await createKeyed(alg);
    const config = await discover(service, app, oidc.PrivateKeyJwt(pair.privateKey));
    const { access_token } = await oidc.clientCredentialsGrant(config, { scope: "links:read" });
    t.true(await isAcceptedByApi(service, access_token));
    t.like(await oidc.tokenIntrospection(config, access_token), { active: true, scope: "links:read" });
    await oidc.tokenRevocation(config, access_token);
    t.false(await isAcceptedByApi(service, access_token));
  });

test("client_id may be sent beside the assertion, and must be the same client", async (t) => {
  const { app, pair } = await createKeyed();
  const other = await createKeyed();
  t.is((await request(await sign(app, pair), { client_id: app.clientId })).status, 200);
  const mixed = request(await sign(app, pair), { client_id: other.app.clientId });
  t.is(await outcomeOf(mixed), "401 invalid_client");
});

test("the issuer, the token endpoint and itself are audiences of the pushed authorization request endpoint", async (t) => {
  const { app, pair } = await createKeyed();
  const par = `${service.url}/oauth/par`;
  const fields = Object.fromEntries(new URL(authorizeUrl(service, app)).searchParams);
  const push = async (aud: string) =>
    read(postForm(par, withAssertion(await sign(app, pair, { aud }), { grant_type: undefined, ...fields })));
  for (const audience of [service.url, TOKEN_ENDPOINT, par])
    t.is((await push(audience)).status, 201, audience);
  for (const aud of [TOKEN_ENDPOINT, [service.url]])
    t.is((await request(await sign(app, pair, { aud }))).status, 200, String(aud));
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

const REFUSED: [name: string, claims: () => object, description: RegExp][] = [
  ["the API as audience", () => ({ aud: `${service.url}/v1` }), /aud has an unexpected value/],
  ["another audience as well", () => ({ aud: [service.url, "https://a.example"] }), /must be a single value/],
  ["another issuer", () => ({ iss: "https://other.example" }), /./],
  ["another subject", () => ({ sub: "lgc_AAAAAAAAAAAAAAAAAAAAAA" }), /./],
  ["expired", () => ({ exp: now() - 60 }), /has expired/],
  ["no id", () => ({ jti: undefined }), /jti is missing/],
];

for (const [name, claims, description] of REFUSED)
  test(`an assertion is refused: ${name}`, async (t) => {
    const { app, pair } = await createKeyed();
    const assertion = await sign(app, pair, claims());
    const { status, body } = await request(assertion, { client_id: app.clientId });
    t.is(status, 401);
    t.is(body.error, "invalid_client");
    t.regex(String(body.error_description), description);
  });

test("an unsigned assertion and one signed with a secret, or with the public key as one, are refused", async (t) => {
  const keyed = await createKeyed();
  const jwk = JSON.stringify(await exportJWK(keyed.pair.publicKey));
  for (const { app } of [keyed, await createApp(service)]) {
    const claims = decodeJwt(await sign(app, keyed.pair));
    const signWith = (secret: string) =>
      new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(secret));
    const symmetric = await Promise.all([jwk, app.clientSecret, "kept-as-a-hash"].map(signWith));
    for (const assertion of [new UnsecuredJWT(claims).encode(), ...symmetric])
      t.is(await outcomeOf(request(assertion)), "401 invalid_client");
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
  const inHeader = await postForm(TOKEN_ENDPOINT, withAssertion(await sign(app, pair)), basic(app));
  t.deepEqual([inBody.status, inHeader.status], [400, 400]);
});

test("malformed assertions are refused", async (t) => {
  const { app } = await createKeyed();
  for (const assertion of ["", "a.b.c", "a".repeat(5000)]) {
    const answer = request(assertion, { client_id: app.clientId });
    t.is(await outcomeOf(answer), "401 invalid_client", assertion.slice(0, 10));
  }
  const { status, body } = await request("a.b.c", { client_assertion_type: "something else" });
  t.true(status === 400 || status === 401, JSON.stringify(body));
});

test("an assertion in another encoding than UTF-8 is refused", async (t) => {
  const { app, pair } = await createKeyed();
  const key = { key: await exportJWK(pair.privateKey), format: "jwk", dsaEncoding: "ieee-p1363" } as const;
  const encode = (part: object, encoding: BufferEncoding) =>
    Buffer.from(JSON.stringify(part), encoding).toString("base64url");
  const statusOf = async (ofHeader: BufferEncoding, ofClaims: BufferEncoding) => {
    const claims = decodeJwt(await sign(app, pair));
    const content = `${encode({ alg: "ES256" }, ofHeader)}.${encode(claims, ofClaims)}`;
    const signature = signBytes("sha256", Buffer.from(content), key).toString("base64url");
    return (await request(`${content}.${signature}`, { client_id: app.clientId })).status;
  };
  t.is(await statusOf("utf8", "utf8"), 200);
  t.is(await statusOf("utf8", "utf16le"), 401);
  t.is(await statusOf("utf16le", "utf8"), 401);
  t.is(await statusOf("utf16le", "utf16le"), 401);
});

test("of twenty concurrent uses of an assertion, exactly one succeeds", async (t) => {
  const { app, pair } = await createKeyed();
  const assertion = await sign(app, pair);
  const outcomes = await atOnce(20, () => outcomeOf(request(assertion)));
  t.deepEqual(outcomes.toSorted(), ["200", ...Array(19).fill("401 invalid_client")]);
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
  const without = await request(await sign(keyless.app, pair));
  t.is(without.status, 401);
  t.deepEqual(without.body, (await request(await sign(keyed.app, pair))).body);
  t.regex(String(without.body.error_description), /no key of the client/);
});

test("without secrets, no string that was a secret is accepted, and client_secrets has no row", async (t) => {
  const { app, pair } = await createKeyed();
  const rotation = await clients.rotateSecret(app.id, { overlapMs: 3_600_000, compromised: false }, OPERATOR);
  const secrets = [app.clientSecret, rotation?.clientSecret as string, "kept-as-a-hash"];
  const fields = { grant_type: "client_credentials", client_id: app.clientId };
  const statuses = async () => {
    const answers = secrets.flatMap((secret) => [
      postForm(TOKEN_ENDPOINT, { ...fields, client_secret: secret }),
      postForm(TOKEN_ENDPOINT, fields, basic({ ...app, clientSecret: secret })),
    ]);
    return (await Promise.all(answers)).map(({ status }) => status);
  };
  t.deepEqual(await statuses(), [200, 200, 200, 200, 401, 401]);
  const token = await service.token(app);
  t.true(await clients.removeSecrets(app.id, OPERATOR));
  t.deepEqual(await statuses(), [401, 401, 401, 401, 401, 401]);
  t.deepEqual((await clients.findByOrganization(app.id))?.secrets, []);
  // Tokens stay valid, as after the end of any secret.
  t.true(await isAcceptedByApi(service, token));
  t.is((await request(await sign(app, pair))).status, 200);
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
  const pairs = await Promise.all(Array.from({ length: 6 }, () => generateKeyPair("ES256")));
  const added = await Promise.allSettled(pairs.map((pair) => addKey(service, app, pair)));
  const refused = added.filter((result) => result.status === "rejected");
  const reasons = refused.map(({ reason }) => reason.message);
  t.deepEqual(reasons, Array(4).fill("limit"));
  t.is((await clients.findKeys(app.clientId)).length, 2);
});
