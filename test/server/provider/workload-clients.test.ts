import test from "ava";
import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isAcceptedByApi, postAsClient } from "../../harness/clients/oauth.ts";
import {
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  jobToken,
} from "../../harness/clients/workload.ts";
import { startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { startTestService, type TestOrganization } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
test.after.always(() => Promise.all([service.close(), issuer.stop()]));

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** Configures openid-client, which knows no secret. */
function discover({ clientId }: TestOrganization, authentication: oidc.ClientAuth) {
  return oidc.discovery(new URL(service.url), clientId, undefined, authentication, {
    execute: [oidc.allowInsecureRequests],
  });
}

test("openid-client sends the token of a job as a grant", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const config = await discover(organization, oidc.None());
  t.true(config.serverMetadata().grant_types_supported?.includes(JWT_BEARER));
  const assertion = await jobToken(service, issuer);
  const tokens = await oidc.genericGrantRequest(config, JWT_BEARER, { assertion, scope: "links:read" });
  t.is(tokens.scope, "links:read");
  t.is(tokens.expires_in, 900);
  t.is(tokens.refresh_token, undefined);
  t.true(await isAcceptedByApi(service, tokens.access_token));
  const again = oidc.genericGrantRequest(config, JWT_BEARER, { assertion });
  await t.throwsAsync(again, {
    message: /invalid_grant|error in the response body/,
    code: "OAUTH_RESPONSE_BODY_ERROR",
  });
});

test("openid-client authenticates with the token of a job", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const assertion = await jobToken(service, issuer);
  const config = await discover(organization, (_server, client, body) => {
    body.set("client_id", client.client_id);
    body.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    body.set("client_assertion", assertion);
  });
  const tokens = await oidc.clientCredentialsGrant(config);
  t.is(tokens.scope, "links:write");
  t.true(await isAcceptedByApi(service, tokens.access_token));
});

test("openid-client binds the access token of a job to a key", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const config = await discover(organization, oidc.None());
  const DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair("ES256"));
  const assertion = await jobToken(service, issuer);
  const tokens = await oidc.genericGrantRequest(config, JWT_BEARER, { assertion }, { DPoP });
  t.is(tokens.token_type, "dpop");
  t.false(await isAcceptedByApi(service, tokens.access_token));
  const url = new URL(`${service.url}/v1/organization`);
  const answer = await oidc.fetchProtectedResource(config, tokens.access_token, url, "GET", null, undefined, {
    DPoP,
  });
  t.is(answer.status, 200);
});

for (const form of Object.keys(FORMS) as Form[]) {
  test(`where DPoP is required, a token sent as ${form} without a proof is refused and can still be used`, async (t) => {
    const organization = await createTrustingOrganization(service, issuer);
    await service.storage.dpopRequirement.set(organization.id, true, OPERATOR);
    const assertion = await jobToken(service, issuer);
    const { status, body } = await exchange(service, organization, form, assertion);
    t.is(status, 400);
    t.is(body.error, "invalid_dpop_proof");
    await service.storage.dpopRequirement.set(organization.id, false, OPERATOR);
    t.is((await exchange(service, organization, form, assertion)).status, 200);
  });
}

test("the client revokes the access token of a job with its secret", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const { body } = await exchange(service, organization, "grant", await jobToken(service, issuer));
  t.is(
    (await postAsClient(service, "revoke", organization, { token: String(body.access_token) })).status,
    200,
  );
  t.false(await isAcceptedByApi(service, body.access_token));
});
