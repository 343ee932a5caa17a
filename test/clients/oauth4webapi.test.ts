import * as oauth from "oauth4webapi";
import { testFlows } from "../harness/clients/library-flows.ts";
import { npmVersion } from "../harness/clients/versions.ts";

// The service of the tests has no TLS.
const OPTIONS = { [oauth.allowInsecureRequests]: true };

testFlows(
  {
    name: "oauth4webapi",
    version: npmVersion("oauth4webapi"),
    flows: ["clientCredentials", "code", "userinfo", "refresh", "revocation", "error", "introspection"],
  },
  async ({ issuer, clientId, clientSecret, redirectUri, scope, allow, use }) => {
    const url = new URL(issuer);
    const discovered = await oauth.discoveryRequest(url, { ...OPTIONS, algorithm: "oauth2" });
    const server = await oauth.processDiscoveryResponse(url, discovered);
    const client = { client_id: clientId };
    const auth = oauth.ClientSecretBasic(clientSecret);

    const machine = await oauth.processClientCredentialsResponse(
      server,
      client,
      await oauth.clientCredentialsGrantRequest(server, client, auth, { scope: "links:read" }, OPTIONS),
    );
    const clientCredentials = await use(machine.access_token);

    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const nonce = oauth.generateRandomNonce();
    const request = new URL(server.authorization_endpoint ?? "");
    request.search = new URLSearchParams({
      response_type: "code",
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }).toString();
    // Compares `state` and `iss`.
    const callback = oauth.validateAuthResponse(server, client, await allow(request.href), state);
    const redeem = async (parameters: URLSearchParams) =>
      oauth.processAuthorizationCodeResponse(
        server,
        client,
        await oauth.authorizationCodeGrantRequest(
          server,
          client,
          auth,
          parameters,
          redirectUri,
          verifier,
          OPTIONS,
        ),
        { expectedNonce: nonce, requireIdToken: true },
      );
    const tokens = await redeem(callback);
    const code = await use(tokens.access_token);

    const { sub } = oauth.getValidatedIdTokenClaims(tokens) ?? { sub: "" };
    const claims = await oauth.processUserInfoResponse(
      server,
      client,
      sub,
      await oauth.userInfoRequest(server, client, tokens.access_token, OPTIONS),
    );

    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, auth, tokens.refresh_token ?? "", OPTIONS),
    );
    const refresh = await use(refreshed.access_token);

    async function isActive(): Promise<boolean> {
      const { active } = await oauth.processIntrospectionResponse(
        server,
        client,
        await oauth.introspectionRequest(server, client, auth, refreshed.access_token, OPTIONS),
      );
      return active;
    }
    const user = await isActive();
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, auth, tokens.refresh_token ?? "", OPTIONS),
    );
    const forged = new URLSearchParams({ code: "unknown", state, iss: issuer });
    const refused = await redeem(oauth.validateAuthResponse(server, client, forged, state)).catch(
      (error) => error,
    );
    const error = refused instanceof oauth.ResponseBodyError ? refused.error : String(refused);
    return {
      clientCredentials,
      code,
      userinfo: claims.sub,
      refresh,
      error,
      introspection: { user, revoked: await isActive() },
    };
  },
);
