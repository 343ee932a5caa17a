import test from "ava";
import * as oidc from "openid-client";
import { authorize, discover } from "../harness/flow.ts";
import { createApp } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

async function strictClient() {
  const config = await discover(service, app);
  // Has openid-client check the signature too, although the answer came over its own connection.
  oidc.enableNonRepudiationChecks(config);
  return config;
}

test("an id_token is signed with a published key, for this client, person, organization and nonce", async (t) => {
  const nonce = oidc.randomNonce();
  const flow = await authorize(service, app, user, { parameters: { scope: "openid", nonce } });
  const tokens = await oidc.authorizationCodeGrant(await strictClient(), flow.callback, {
    pkceCodeVerifier: flow.verifier,
    expectedState: flow.state,
    expectedNonce: nonce,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  t.is(claims?.iss, service.url);
  t.is(claims?.aud, app.clientId);
  t.is(claims?.sub, user.id);
  t.is(claims?.preferred_username, user.username);
  t.is(claims?.organization_id, own.id);
  t.is(claims?.exp, (claims?.iat ?? 0) + 3600);
});

const WRONG: [what: string, checks: oidc.AuthorizationCodeGrantChecks][] = [
  ["another nonce", { expectedNonce: "another" }],
  ["another state", { expectedState: "another" }],
  ["a nonce that is not asked for", { expectedNonce: undefined }],
];

for (const [what, checks] of WRONG) {
  test(`openid-client notices ${what}`, async (t) => {
    const parameters = { scope: "openid", nonce: "the-nonce" };
    const flow = await authorize(service, app, user, { parameters });
    const config = await strictClient();
    await t.throwsAsync(() =>
      oidc.authorizationCodeGrant(config, flow.callback, {
        pkceCodeVerifier: flow.verifier,
        expectedState: flow.state,
        expectedNonce: "the-nonce",
        ...checks,
      }),
    );
  });
}

test("sec 6: openid-client notices an answer of another issuer", async (t) => {
  const flow = await authorize(service, app, user);
  flow.callback.searchParams.set("iss", "https://evil.example");
  const checks = { pkceCodeVerifier: flow.verifier, expectedState: flow.state };
  const config = await strictClient();
  await t.throwsAsync(() => oidc.authorizationCodeGrant(config, flow.callback, checks));
});
