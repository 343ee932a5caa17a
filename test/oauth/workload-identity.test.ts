import test from "ava";
import * as oidc from "openid-client";
import { discover } from "../harness/clients/authorization.ts";
import { isAcceptedByApi, outcomeOf, postAsClient } from "../harness/clients/oauth.ts";
import {
  addRule,
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../harness/clients/workload.ts";
import { advanceClock } from "../harness/clock.ts";
import { atOnce } from "../harness/database/storage.ts";
import { startTokenIssuer } from "../harness/providers/token-issuer.ts";
import { bearer, OPERATOR, startTestService } from "../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
const organization = await createTrustingOrganization(service, issuer);
const { organizations, organizationSettings, trustRules } = service.storage;

const createOrganization = () => createTrustingOrganization(service, issuer);
const send = async (
  { clientId } = organization,
  claims: Record<string, unknown> = {},
  form: Form = "grant",
) => exchange(service, { clientId }, form, await jobToken(service, issuer, claims));

for (const form of Object.keys(FORMS) as Form[]) {
  test(`a job sends its token as ${form} and gets an access token for 15 minutes`, async (t) => {
    const answer = await send(organization, {}, form);
    t.is(answer.status, 200, answer.text);
    const { access_token, ...rest } = answer.body;
    t.deepEqual(rest, { token_type: "Bearer", expires_in: 900, scope: "links:write" });
    t.is(answer.headers.get("cache-control"), "no-store");
    const token = String(access_token);
    const introspected = await postAsClient(service, "introspect", organization, { token });
    t.like(introspected.body, { client_id: organization.clientId, aud: service.url });
    t.is(Number(introspected.body.exp) - Number(introspected.body.iat), 900);
    const link = await fetch(`${service.url}/v1/links`, {
      method: "POST",
      headers: { ...bearer(token), "content-type": "application/json" },
      body: JSON.stringify({ url: "https://example.com/" }),
    });
    t.is(link.status, 201);
    t.is((await fetch(`${service.url}/v1/webhooks`, { headers: bearer(token) })).status, 403);
  });

  test(`where DPoP is required, a token sent as ${form} without a proof is refused and can still be used`, async (t) => {
    const own = await createOrganization();
    const requireDpop = (requiresDpop: boolean) =>
      organizationSettings.change(own.id, { requiresDpop }, OPERATOR);
    await requireDpop(true);
    const assertion = await jobToken(service, issuer);
    t.is(await outcomeOf(exchange(service, own, form, assertion)), "400 invalid_dpop_proof");
    await requireDpop(false);
    t.is((await exchange(service, own, form, assertion)).status, 200);
  });

  test(`of 10 concurrent requests with one token as ${form}, one succeeds`, async (t) => {
    const own = await createOrganization();
    for (const claims of [{}, { jti: undefined, run_id: form }]) {
      const token = await jobToken(service, issuer, claims);
      const answers = await atOnce(10, () => exchange(service, own, form, token));
      const refused = answers.filter(({ status }) => status !== 200);
      t.is(refused.length, 9);
      for (const answer of refused) isRefused(t, form, answer, /the JWT was already used$/);
    }
  });

  test(`on the Free plan, only a workload with a valid token as ${form} learns of the plan`, async (t) => {
    const own = await createOrganization();
    await organizations.setPlan(own.id, "free", OPERATOR);
    const token = await jobToken(service, issuer);
    t.is(await outcomeOf(exchange(service, own, form, token)), "400 unauthorized_client");
    const stranger = { sub: "repo:evil/repo:ref:refs/heads/main" };
    isRefused(t, form, await send(own, stranger, form), /check sub$/);
    await organizations.setPlan(own.id, "growth", OPERATOR);
    const { status } = await exchange(service, own, form, token);
    t.is(status, 200, "the refusal didn't use the token up");
  });
}

test("a token that was used is refused in the other form, and for another client", async (t) => {
  const [own, other] = [await createOrganization(), await createOrganization()];
  const token = await jobToken(service, issuer);
  t.is((await exchange(service, own, "grant", token)).status, 200);
  const form = "client_assertion";
  isRefused(t, form, await exchange(service, own, form, token), /already used$/);
  isRefused(t, "grant", await exchange(service, other, "grant", token), /already used$/);
});

test("a token with any expiry is accepted once, and another one with the same jti is refused", async (t) => {
  for (const exp of [Date.now() / 1000 + 60.123_456, 1e300]) {
    const token = await jobToken(service, issuer, { exp });
    t.is((await exchange(service, organization, "grant", token)).status, 200, String(exp));
    isRefused(t, "grant", await exchange(service, organization, "grant", token), /already used$/);
  }
  const jti = "a-repeated-id";
  t.is((await send(organization, { jti })).status, 200);
  isRefused(t, "grant", await send(organization, { jti, run_attempt: "2" }), /already used$/);
});

test("a deleted rule is not used any more, nor are those of a deleted organization", async (t) => {
  const [own, deleted] = [await createOrganization(), await createOrganization()];
  const { body } = await send(own);
  t.true(await trustRules.remove(own.id, own.ruleId, OPERATOR));
  await organizations.remove(deleted.id, OPERATOR);
  for (const one of [own, deleted]) isRefused(t, "grant", await send(one), UNTRUSTED);
  t.true(await isAcceptedByApi(service, body.access_token), "issued tokens expire by themselves");
});

test.serial("new keys of an issuer are found within 30 seconds, and old ones are then refused", async (t) => {
  const before = await jobToken(service, issuer);
  t.is((await send()).status, 200);
  await issuer.rotateKeys();
  advanceClock(31_000);
  t.is((await send()).status, 200);
  isRefused(t, "grant", await exchange(service, organization, "grant", before), UNTRUSTED);
});

test("a token without the name of its key or without a type is accepted, as some platforms issue it", async (t) => {
  for (const header of [{ kid: undefined }, { typ: undefined }]) {
    const token = await jobToken(service, issuer, {}, header);
    const { status, text } = await exchange(service, organization, "grant", token);
    t.is(status, 200, text);
  }
});

test("the scopes of several matching rules add up, and all of them were used", async (t) => {
  const own = await createOrganization();
  for (const [subject, scope] of [
    ["repo:octo-org@65/*", "webhooks:read"],
    ["repo:octo-org@65/other", "webhooks:write"],
  ] as const)
    await addRule(service, own, { issuer: issuer.issuer, subject, scopes: [scope] });
  t.is((await send(own)).body.scope, "links:write webhooks:read");
  const rules = await trustRules.list(own.id);
  const isUsed = rules.map(({ lastUsedAt }) => lastUsedAt !== null);
  t.deepEqual(isUsed, [true, true, false]);
});

test("a rule may require another audience", async (t) => {
  const aud = "https://github.com/octo-org";
  const own = await createTrustingOrganization(service, issuer, { audience: aud });
  t.is((await send(own, { aud })).status, 200);
  isRefused(t, "grant", await send(own), /aud has an unexpected value$/);
});

test("a token may be requested for one resource and fewer scopes", async (t) => {
  const fields = { resource: `${service.url}/mcp`, scope: "openid links:read webhooks:read" };
  const token = await jobToken(service, issuer);
  const { body } = await exchange(service, organization, "grant", token, fields);
  t.is(body.scope, "links:read");
  t.false(await isAcceptedByApi(service, body.access_token));
});

test("the client's secret works beside trust rules, and revokes the tokens of jobs", async (t) => {
  const fields = { grant_type: "client_credentials" };
  const own = await postAsClient(service, "token", organization, fields);
  t.like(own.body, {
    expires_in: 3600,
    scope: "links:read links:write domains:read domains:write webhooks:read webhooks:write",
  });
  const token = String((await send()).body.access_token);
  t.true(await isAcceptedByApi(service, token));
  t.is((await postAsClient(service, "revoke", organization, { token })).status, 200);
  t.false(await isAcceptedByApi(service, token));
});

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

test("openid-client sends the token of a job as a grant, and binds the access token to a key", async (t) => {
  const config = await discover(service, { clientId: organization.clientId }, oidc.None());
  const options = { DPoP: oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair("ES256")) };
  const parameters = { assertion: await jobToken(service, issuer) };
  const tokens = await oidc.genericGrantRequest(config, JWT_BEARER, parameters, options);
  const { token_type, access_token } = tokens;
  t.is(token_type, "dpop");
  t.false(await isAcceptedByApi(service, access_token));
  const url = new URL(`${service.url}/v1/organization`);
  const call = oidc.fetchProtectedResource(config, access_token, url, "GET", null, undefined, options);
  t.is((await call).status, 200);
});
