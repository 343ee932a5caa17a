import { createHash, randomBytes } from "node:crypto";
import { AuthorizationCode, ClientCredentials } from "simple-oauth2";
import { testFlows } from "../harness/clients/library-flows.ts";
import { npmVersion } from "../harness/clients/versions.ts";

testFlows(
  {
    name: "simple-oauth2",
    version: npmVersion("simple-oauth2"),
    flows: ["clientCredentials", "code", "refresh", "revocation", "error"],
  },
  async ({ issuer, clientId, clientSecret, redirectUri, scope, allow, use }) => {
    const client = { id: clientId, secret: clientSecret };
    const auth = { tokenHost: issuer, tokenPath: "/oauth/token", revokePath: "/oauth/revoke" };
    const machine = await new ClientCredentials({ client, auth }).getToken({ scope: "links:read" });
    const clientCredentials = await use(String(machine.token.access_token));

    const app = new AuthorizationCode({ client, auth: { ...auth, authorizePath: "/oauth/authorize" } });
    const state = randomBytes(16).toString("base64url");
    const verifier = randomBytes(32).toString("base64url");
    // The library passes the parameters of PKCE on; its types don't name them.
    const request = {
      redirect_uri: redirectUri,
      scope,
      state,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    };
    const { searchParams } = await allow(app.authorizeURL(request));
    if (searchParams.get("state") !== state) throw new Error("the state differs");
    const redemption = {
      code: searchParams.get("code") ?? "",
      redirect_uri: redirectUri,
      code_verifier: verifier,
    };
    const tokens = await app.getToken(redemption);
    const code = await use(String(tokens.token.access_token));

    const refreshed = await tokens.refresh();
    const refresh = await use(String(refreshed.token.access_token));

    await refreshed.revokeAll();
    const refused = await app.getToken({ ...redemption, code: "unknown" }).catch((error) => error);
    return { clientCredentials, code, refresh, error: refused.data?.payload.error };
  },
);
