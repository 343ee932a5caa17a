import { createHmac } from "node:crypto";
import test from "ava";
import { exportJWK, exportSPKI } from "jose";
import { type Fields, formOf, postAsClient, read } from "../../harness/clients/oauth.ts";
import {
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../../harness/clients/workload.ts";
import { PRODUCTION } from "../../harness/production.ts";
import { githubClaims, signWithForeignKey, startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const [service, issuer, unknownIssuer] = await Promise.all([
  startTestService(),
  startTokenIssuer(),
  startTokenIssuer(),
]);
const organization = await createTrustingOrganization(service, issuer);

test.after.always(() => Promise.all([service.close(), issuer.stop(), unknownIssuer.stop()]));

const BOTH = Object.keys(FORMS) as Form[];

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
/** Signs a token with HMAC, as if the public key were a secret. */
async function signWithPublicKey(
  secret: (key: typeof issuer.key.publicKey) => Promise<string>,
): Promise<string> {
  const content = `${encode({ alg: "HS256", typ: "JWT", kid: issuer.key.kid })}.${encode(githubClaims(issuer.issuer, service.url))}`;
  const signature = createHmac("sha256", await secret(issuer.key.publicKey))
    .update(content)
    .digest("base64url");
  return `${content}.${signature}`;
}

const UNSIGNED: [what: string, token: () => Promise<string> | string, clientId?: string][] = [
  ["for an unknown client", () => jobToken(service, issuer), "lgc_AAAAAAAAAAAAAAAAAAAAAA"],
  ["for the dashboard's client", () => jobToken(service, issuer), "dashboard"],
  ["of an issuer without a rule", () => jobToken(service, unknownIssuer)],
  [
    "that names its issuer with a trailing slash",
    () => jobToken(service, issuer, { iss: `${issuer.issuer}/` }),
  ],
  [
    "that names its issuer in another case",
    () => jobToken(service, issuer, { iss: issuer.issuer.toUpperCase() }),
  ],
  ["without an issuer", () => jobToken(service, issuer, { iss: undefined })],
  ["whose issuer is a list", () => jobToken(service, issuer, { iss: [issuer.issuer] as unknown as string })],
  ["signed by another issuer", () => unknownIssuer.sign(githubClaims(issuer.issuer, service.url))],
  [
    "signed by another key under the same id",
    () => signWithForeignKey(githubClaims(issuer.issuer, service.url), issuer.key.kid),
  ],
  ["with the signature cut off", async () => (await jobToken(service, issuer)).replace(/[^.]*$/, "")],
  [
    "with changed claims",
    async () => {
      const [header, , signature] = (await jobToken(service, issuer)).split(".");
      return `${header}.${encode({ ...githubClaims(issuer.issuer, service.url), scope: "all" })}.${signature}`;
    },
  ],
  ["with alg none", () => `${encode({ alg: "none" })}.${encode(githubClaims(issuer.issuer, service.url))}.`],
  ["with an HMAC by the public key in PEM", () => signWithPublicKey((key) => exportSPKI(key))],
  [
    "with an HMAC by the public key as JWK",
    () => signWithPublicKey(async (key) => JSON.stringify(await exportJWK(key))),
  ],
];

for (const [what, sign, clientId = organization.clientId] of UNSIGNED) {
  for (const form of BOTH) {
    test(`a token ${what} is refused as ${form}, without saying why`, async (t) => {
      isRefused(t, form, await exchange(service, { clientId }, form, await sign()), UNTRUSTED);
    });
  }
}

test("the keys of an issuer that no rule of the client names are never fetched", async (t) => {
  const stranger = await startTokenIssuer();
  t.teardown(() => stranger.stop());
  const other = await createTrustingOrganization(service, unknownIssuer);
  await createTrustingOrganization(service, stranger);
  isRefused(
    t,
    "grant",
    await exchange(service, other, "grant", await jobToken(service, stranger)),
    UNTRUSTED,
  );
  t.deepEqual(stranger.requests, []);
});

test("in production, the keys of an issuer on loopback are never fetched", async (t) => {
  const production = await startTestService({ ...PRODUCTION, RATE_LIMIT: "on" });
  const local = await startTokenIssuer();
  t.teardown(() => Promise.all([production.close(), local.stop()]));
  const own = await createTrustingOrganization(production, local);
  isRefused(
    t,
    "grant",
    await exchange(production, own, "grant", await jobToken(production, local)),
    UNTRUSTED,
  );
  t.deepEqual(local.requests, []);
});

test("a token is refused for the client of another organization", async (t) => {
  const other = await service.createOrganization();
  isRefused(t, "grant", await exchange(service, other, "grant", await jobToken(service, issuer)), UNTRUSTED);
});

const MALFORMED = ["not.a.token", "a", "..", `${encode({ alg: "RS256" })}.${encode([])}.x`, "é".repeat(100)];

for (const assertion of MALFORMED) {
  test(`the assertion ${JSON.stringify(assertion.slice(0, 30))} is an invalid grant`, async (t) => {
    isRefused(t, "grant", await exchange(service, organization, "grant", assertion), UNTRUSTED);
  });
}

test("an issuer whose metadata names another one is refused", async (t) => {
  const liar = await startTokenIssuer();
  t.teardown(() => liar.stop());
  liar.respond("/.well-known/openid-configuration", (_request, response) =>
    response.end(JSON.stringify({ issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/jwks` })),
  );
  const own = await createTrustingOrganization(service, liar);
  isRefused(t, "grant", await exchange(service, own, "grant", await jobToken(service, liar)), UNTRUSTED);
});

test("an issuer that doesn't respond is refused, and accepted when it does again", async (t) => {
  const away = await startTokenIssuer();
  t.teardown(() => away.stop());
  const own = await createTrustingOrganization(service, away);
  const { restore } = away.breakDown();
  isRefused(t, "grant", await exchange(service, own, "grant", await jobToken(service, away)), UNTRUSTED);
  restore();
  t.is((await exchange(service, own, "grant", await jobToken(service, away))).status, 200);
});

test("discovery and keys are fetched once for many tokens", async (t) => {
  const fresh = await startTokenIssuer();
  t.teardown(() => fresh.stop());
  const own = await createTrustingOrganization(service, fresh);
  for (let count = 0; count < 3; count++)
    await exchange(service, own, "grant", await jobToken(service, fresh));
  t.deepEqual(fresh.requests, ["/.well-known/openid-configuration", "/jwks"]);
});

const now = () => Math.floor(Date.now() / 1000);

type Job = { claims?: Record<string, unknown>; header?: Record<string, unknown> };
const WRONG_CLAIMS: [what: string, job: () => Job, description: RegExp][] = [
  [
    "another branch",
    () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/feature" } }),
    /check sub$/,
  ],
  [
    "another repository",
    () => ({ claims: { sub: "repo:octo-org@65/other@75:ref:refs/heads/main" } }),
    /check sub$/,
  ],
  ["a pull request", () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:pull_request" } }), /check sub$/],
  [
    "the subject in another case",
    () => ({ claims: { sub: "REPO:octo-org@65/octo-repo@74:ref:refs/heads/main" } }),
    /check sub$/,
  ],
  [
    "the subject with a longer branch",
    () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main2" } }),
    /check sub$/,
  ],
  [
    "the subject with a trailing space",
    () => ({ claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main " } }),
    /check sub$/,
  ],
  [
    "a subject with quotes and line breaks",
    () => ({ claims: { sub: 'a"\\\n<b>é' } }),
    /sub a\?\?\?<b>\?, .*check sub$/,
  ],
  ["an empty subject", () => ({ claims: { sub: "" } }), /check sub$/],
  ["no subject", () => ({ claims: { sub: undefined } }), /sub is missing$/],
  ["a subject that is a number", () => ({ claims: { sub: 5 } }), /sub must be a string$/],
  [
    "a subject that can't become text",
    () => ({ claims: { sub: { toString: 1, valueOf: 1 } } }),
    /sub must be a string$/,
  ],
  [
    "an audience that can't become text",
    () => ({ claims: { aud: [service.url, { toString: 1, valueOf: 1 }] } }),
    /check aud$/,
  ],
  ["another owner", () => ({ claims: { repository_owner_id: "66" } }), /check repository_owner_id$/],
  [
    "an owner that is a list",
    () => ({ claims: { repository_owner_id: ["65"] } }),
    /check repository_owner_id$/,
  ],
  ["no owner", () => ({ claims: { repository_owner_id: undefined } }), /check repository_owner_id$/],
  [
    "another audience",
    () => ({ claims: { aud: "https://sts.example.com" } }),
    /aud has an unexpected value$/,
  ],
  ["the API as audience", () => ({ claims: { aud: `${service.url}/v1` } }), /aud has an unexpected value$/],
  [
    "the audience with a trailing slash",
    () => ({ claims: { aud: `${service.url}/` } }),
    /aud has an unexpected value$/,
  ],
  ["several audiences", () => ({ claims: { aud: [service.url, "https://sts.example.com"] } }), /check aud$/],
  ["an empty list of audiences", () => ({ claims: { aud: [] } }), /aud has an unexpected value$/],
  ["no audience", () => ({ claims: { aud: undefined } }), /aud is missing$/],
  ["an expiry more than the clock skew ago", () => ({ claims: { exp: now() - 40 } }), /has expired$/],
  ["no expiry", () => ({ claims: { exp: undefined } }), /exp is missing$/],
  ["an expiry that is no number", () => ({ claims: { exp: "never" } }), /exp has an unexpected value$/],
  ["no time of issue", () => ({ claims: { iat: undefined } }), /iat is missing$/],
  ["a time of issue more than an hour ago", () => ({ claims: { iat: now() - 3700 } }), /is too old$/],
  ["a time of issue in the future", () => ({ claims: { iat: now() + 120 } }), /was issued in the future$/],
  ["a validity that begins later", () => ({ claims: { nbf: now() + 120 } }), /is not valid yet$/],
  ["a type that is no text", () => ({ header: { typ: 5 } }), /wrong typ$/],
  ["a type that can't become text", () => ({ header: { typ: { toString: 1, valueOf: 1 } } }), /wrong typ$/],
  ["a type that is a list", () => ({ header: { typ: ["JWT"] } }), /wrong typ$/],
  ["the type of an access token", () => ({ header: { typ: "at+jwt" } }), /wrong typ$/],
];

for (const [what, job, description] of WRONG_CLAIMS) {
  for (const form of BOTH) {
    test(`a token with ${what} is refused as ${form}`, async (t) => {
      const { claims = {}, header = {} } = job();
      const token = await jobToken(service, issuer, claims, header);
      isRefused(t, form, await exchange(service, organization, form, token), description);
    });
  }
}

test("a * in the subject of a token is no pattern", async (t) => {
  const sub = "repo:octo-org@65/octo-repo@74:*";
  isRefused(
    t,
    "grant",
    await exchange(service, organization, "grant", await jobToken(service, issuer, { sub })),
    /check sub$/,
  );
});

test("a refused token says nothing about the rule that it doesn't match", async (t) => {
  const stranger = { sub: "repo:evil@1/repo@2:ref:refs/heads/main", repository_owner_id: "1" };
  const { text } = await exchange(service, organization, "grant", await jobToken(service, issuer, stranger));
  for (const secret of ["octo-org", "repository_owner_id", "octo-repo", "Deploy", organization.name])
    t.false(text.includes(secret), secret);
});

const REQUESTS: [what: string, fields: Fields, status: number, error: string][] = [
  ["no assertion", { assertion: undefined }, 400, "invalid_request"],
  ["an empty assertion", { assertion: "" }, 400, "invalid_request"],
  ["no client ID", { client_id: undefined }, 400, "invalid_request"],
  ["only scopes that no rule allows", { scope: "webhooks:write" }, 400, "invalid_scope"],
  ["an unknown scope", { scope: "links:write admin" }, 400, "invalid_scope"],
  ["another resource", { resource: "https://evil.example" }, 400, "invalid_target"],
];

for (const [what, fields, status, error] of REQUESTS) {
  test(`a request with ${what} is refused, and the token can still be used`, async (t) => {
    const token = await jobToken(service, issuer);
    const refused = await exchange(service, organization, "grant", token, fields);
    t.is(refused.body.error, error, refused.text);
    t.is(refused.status, status);
    t.is((await exchange(service, organization, "grant", token)).status, 200);
  });
}

test("repeated assertions are refused", async (t) => {
  const token = await jobToken(service, issuer);
  const { status, body } = await exchange(service, organization, "grant", token, {
    assertion: [token, token],
  });
  t.is(status, 400);
  t.is(body.error, "invalid_request");
});

test("an assertion beside a secret is refused", async (t) => {
  const token = await jobToken(service, issuer);
  const fields = FORMS.grant.fields(token);
  const withBasic = await postAsClient(service, "token", organization, fields);
  t.is(withBasic.body.error, "invalid_request");
  const { clientSecret: client_secret } = organization;
  const posted = await exchange(service, organization, "grant", token, { client_secret });
  t.is(posted.body.error, "invalid_request");
  const both = await exchange(service, organization, "client_assertion", token, { client_secret });
  t.is(both.body.error, "invalid_request");
});

const OTHER_REQUESTS: [endpoint: string, fields: Fields][] = [
  ["revoke", { token: "lga_unknown" }],
  ["introspect", { token: "lga_unknown" }],
  ["par", { response_type: "code", redirect_uri: "https://app.example.com/callback" }],
  ["token", { grant_type: "refresh_token", refresh_token: "lgr_unknown" }],
  ["token", { grant_type: "authorization_code", code: "unknown" }],
];

for (const [endpoint, fields] of OTHER_REQUESTS) {
  test(`the token of a workload doesn't authenticate ${fields.grant_type ?? "a request"} at /oauth/${endpoint}`, async (t) => {
    const assertion = FORMS.client_assertion.fields(await jobToken(service, issuer));
    const body = formOf({ ...assertion, grant_type: undefined, client_id: organization.clientId, ...fields });
    const answer = await read(postForm(`${service.url}/oauth/${endpoint}`, body));
    t.is(answer.status, 401, answer.text);
    t.is(answer.body.error, "invalid_client");
  });
}
