import test from "ava";
import { type Fields, formOf } from "../harness/clients/authorization-request.ts";
import { outcomeOf, postAsClient, read } from "../harness/clients/oauth.ts";
import {
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../harness/clients/workload.ts";
import { PRODUCTION } from "../harness/production.ts";
import { githubClaims, signWithForeignKey, startTokenIssuer } from "../harness/providers/token-issuer.ts";
import { postForm, startTestService } from "../harness/service.ts";

const [service, issuer, unknownIssuer] = await Promise.all([
  startTestService(),
  startTokenIssuer(),
  startTokenIssuer(),
]);
const organization = await createTrustingOrganization(service, issuer);
const unrelated = await service.createOrganization();

const BOTH = Object.keys(FORMS) as Form[];

const job = (claims?: Record<string, unknown>) => jobToken(service, issuer, claims);
const claimsOfJob = () => githubClaims(issuer.issuer, service.url);
const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

const UNSIGNED: [what: string, token: () => Promise<string> | string, clientId?: string][] = [
  ["for an unknown client", () => job(), "lgc_AAAAAAAAAAAAAAAAAAAAAA"],
  ["for the dashboard's client", () => job(), "dashboard"],
  ["for the client of another organization", () => job(), unrelated.clientId],
  ["of an issuer without a rule", () => jobToken(service, unknownIssuer)],
  ["whose issuer is a list", () => job({ iss: [issuer.issuer] })],
  ["signed by another issuer", () => unknownIssuer.sign(claimsOfJob())],
  ["signed by another key under the same id", () => signWithForeignKey(claimsOfJob(), issuer.key.kid)],
];

for (const [what, sign, clientId = organization.clientId] of UNSIGNED)
  for (const form of BOTH)
    test(`a token ${what} is refused as ${form}, without saying why`, async (t) => {
      isRefused(t, form, await exchange(service, { clientId }, form, await sign()), UNTRUSTED);
    });

test("the keys of an issuer that no rule of the client names are never fetched", async (t) => {
  const stranger = await startTokenIssuer();
  const other = await createTrustingOrganization(service, unknownIssuer);
  await createTrustingOrganization(service, stranger);
  const answer = await exchange(service, other, "grant", await jobToken(service, stranger));
  isRefused(t, "grant", answer, UNTRUSTED);
  t.deepEqual(stranger.requests, []);
});

test("in production, the keys of an issuer on loopback are never fetched", async (t) => {
  const production = await startTestService({ ...PRODUCTION, RATE_LIMIT: "on" });
  const local = await startTokenIssuer();
  t.teardown(() => Promise.all([production.close(), local.stop()]));
  const own = await createTrustingOrganization(production, local);
  const answer = await exchange(production, own, "grant", await jobToken(production, local));
  isRefused(t, "grant", answer, UNTRUSTED);
  t.deepEqual(local.requests, []);
});

test("an issuer that doesn't respond is refused, and accepted when it does again", async (t) => {
  const away = await startTokenIssuer();
  const own = await createTrustingOrganization(service, away);
  const { restore } = away.breakDown();
  isRefused(t, "grant", await exchange(service, own, "grant", await jobToken(service, away)), UNTRUSTED);
  restore();
  t.is((await exchange(service, own, "grant", await jobToken(service, away))).status, 200);
});

test("a malformed assertion is an invalid grant", async (t) => {
  const list = `${encode({ alg: "RS256" })}.${encode([])}.x`;
  for (const assertion of ["not.a.token", "a", "..", list, "é".repeat(100)])
    isRefused(t, "grant", await exchange(service, organization, "grant", assertion), UNTRUSTED);
});

type Job = { claims?: Record<string, unknown>; header?: Record<string, unknown> };
const WRONG_CLAIMS: [what: string, job: Job, description: RegExp][] = [
  ["another branch", { claims: { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/a" } }, /check sub$/],
  ["quotes and line breaks", { claims: { sub: 'a"\\\n<b>é' } }, /sub a\?\?\?<b>\?, .*check sub$/],
  ["the API as audience", { claims: { aud: `${service.url}/v1` } }, /aud has an unexpected value$/],
  ["a type that can't become text", { header: { typ: { toString: 1, valueOf: 1 } } }, /wrong typ$/],
  ["the type of an access token", { header: { typ: "at+jwt" } }, /wrong typ$/],
];

for (const [what, { claims, header }, description] of WRONG_CLAIMS)
  for (const form of BOTH)
    test(`a token with ${what} is refused as ${form}`, async (t) => {
      const token = await jobToken(service, issuer, claims, header);
      isRefused(t, form, await exchange(service, organization, form, token), description);
    });

test("a refused token says nothing about the rule that it doesn't match", async (t) => {
  const stranger = { sub: "repo:evil@1/repo@2:ref:refs/heads/main", repository_owner_id: "1" };
  const { text } = await exchange(service, organization, "grant", await job(stranger));
  for (const secret of ["octo-org", "repository_owner_id", "octo-repo", "Deploy", organization.name])
    t.false(text.includes(secret), secret);
});

const REQUESTS: [what: string, fields: Fields, error: string][] = [
  ["no assertion", { assertion: undefined }, "invalid_request"],
  ["two assertions", { assertion: ["a.b.c", "a.b.c"] }, "invalid_request"],
  ["no client ID", { client_id: undefined }, "invalid_request"],
  ["only scopes that no rule allows", { scope: "webhooks:write" }, "invalid_scope"],
  ["another resource", { resource: "https://evil.example" }, "invalid_target"],
];

for (const [what, fields, error] of REQUESTS)
  test(`a request with ${what} is refused, and the token can still be used`, async (t) => {
    const token = await job();
    t.is(await outcomeOf(exchange(service, organization, "grant", token, fields)), `400 ${error}`);
    t.is((await exchange(service, organization, "grant", token)).status, 200);
  });

test("an assertion beside a secret is refused", async (t) => {
  const token = await job();
  const withBasic = postAsClient(service, "token", organization, FORMS.grant.fields(token));
  t.is(await outcomeOf(withBasic), "400 invalid_request");
  const { clientSecret: client_secret } = organization;
  for (const form of BOTH) {
    const posted = exchange(service, organization, form, token, { client_secret });
    t.is(await outcomeOf(posted), "400 invalid_request", form);
  }
});

const OTHER_REQUESTS: [endpoint: string, fields: Fields][] = [
  ["revoke", { token: "lga_unknown" }],
  ["introspect", { token: "lga_unknown" }],
  ["par", { response_type: "code", redirect_uri: "https://app.example.com/callback" }],
  ["token", { grant_type: "refresh_token", refresh_token: "lgr_unknown" }],
  ["token", { grant_type: "authorization_code", code: "unknown" }],
];

for (const [endpoint, fields] of OTHER_REQUESTS)
  test(`the token of a workload doesn't authenticate ${fields.grant_type ?? "a request"} at /oauth/${endpoint}`, async (t) => {
    const assertion = FORMS.client_assertion.fields(await job());
    const body = formOf({ ...assertion, grant_type: undefined, client_id: organization.clientId, ...fields });
    const answer = read(postForm(`${service.url}/oauth/${endpoint}`, body));
    t.is(await outcomeOf(answer), "401 invalid_client");
  });
