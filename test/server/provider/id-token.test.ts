import test from "ava";
import * as oidc from "openid-client";
import { authorize, discover } from "../../harness/clients/flow.ts";
import { createApp } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

async function strictClient() {
  const config = await discover(service, app);
  // Makes openid-client verify the signature too, although it received the token directly from the server.
  oidc.enableNonRepudiationChecks(config);
  return config;
}

test("an id_token is signed with a published key and names the client, user, organization and nonce", async (t) => {
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
  t.deepEqual(claims?.amr, ["pwd"]);
  t.true(Math.abs((claims?.auth_time ?? 0) - Date.now() / 1000) < 60);
});

type Checks = oidc.AuthorizationCodeGrantChecks;

const MISMATCHES: [what: string, change: (checks: Checks) => Checks][] = [
  ["a different nonce", (checks) => ({ ...checks, expectedNonce: "another" })],
  ["a different state", (checks) => ({ ...checks, expectedState: "another" })],
  ["an unexpected nonce", ({ expectedNonce: _, ...checks }) => checks],
];

for (const [what, change] of MISMATCHES) {
  test(`openid-client rejects ${what}`, async (t) => {
    const parameters = { scope: "openid", nonce: "the-nonce" };
    const flow = await authorize(service, app, user, { parameters });
    const config = await strictClient();
    await t.throwsAsync(() =>
      oidc.authorizationCodeGrant(
        config,
        flow.callback,
        change({
          pkceCodeVerifier: flow.verifier,
          expectedState: flow.state,
          expectedNonce: "the-nonce",
        }),
      ),
    );
  });
}

test("openid-client rejects a response from another issuer", async (t) => {
  const flow = await authorize(service, app, user);
  flow.callback.searchParams.set("iss", "https://evil.example");
  const checks = { pkceCodeVerifier: flow.verifier, expectedState: flow.state };
  const config = await strictClient();
  await t.throwsAsync(() => oidc.authorizationCodeGrant(config, flow.callback, checks));
});
