import {
  CodeChallengeMethod,
  generateCodeVerifier,
  generateState,
  OAuth2Client,
  OAuth2RequestError,
} from "arctic";
import { testFlows } from "../harness/clients/library-flows.ts";
import { npmVersion } from "../harness/clients/versions.ts";

testFlows(
  { name: "arctic", version: npmVersion("arctic"), flows: ["code", "refresh", "revocation", "error"] },
  async ({ issuer, clientId, clientSecret, redirectUri, scope, allow, use }) => {
    const client = new OAuth2Client(clientId, clientSecret, redirectUri);
    const state = generateState();
    const verifier = generateCodeVerifier();
    const scopes = scope.split(" ");
    const url = client.createAuthorizationURLWithPKCE(
      `${issuer}/oauth/authorize`,
      state,
      CodeChallengeMethod.S256,
      verifier,
      scopes,
    );
    const { searchParams } = await allow(url.href);
    if (searchParams.get("state") !== state) throw new Error("the state differs");
    const endpoint = `${issuer}/oauth/token`;
    const tokens = await client.validateAuthorizationCode(endpoint, searchParams.get("code") ?? "", verifier);
    const code = await use(tokens.accessToken());
    const refreshed = await client.refreshAccessToken(endpoint, tokens.refreshToken(), scopes);
    const refresh = await use(refreshed.accessToken());
    await client.revokeToken(`${issuer}/oauth/revoke`, refreshed.refreshToken());
    const refused = await client
      .validateAuthorizationCode(endpoint, "unknown", verifier)
      .catch((error) => error);
    const error = refused instanceof OAuth2RequestError ? refused.code : String(refused);
    return { code, refresh, error };
  },
);
