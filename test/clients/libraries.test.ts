import { randomBytes, randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Auth, type AuthConfig } from "@auth/core";
import type { Account } from "@auth/core/types";
import {
  CodeChallengeMethod,
  generateCodeVerifier,
  generateState,
  OAuth2Client,
  OAuth2RequestError,
} from "arctic";
import * as oauth from "oauth4webapi";
import passport from "passport";
import { Strategy, TokenError, type VerifyCallback } from "passport-oauth2";
import { AuthorizationCode, ClientCredentials } from "simple-oauth2";
import { startApp } from "../harness/clients/app-server.ts";
import { pkce } from "../harness/clients/authorization-request.ts";
import { type ClientSetup, testFlows } from "../harness/clients/library-flows.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
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

/** Configures linkgate as an OpenID Connect provider. The session contains the account, which has the tokens. */
function configure({ issuer, clientId, clientSecret, scope }: ClientSetup): AuthConfig {
  return {
    basePath: "/auth",
    secret: randomBytes(32).toString("base64url"),
    trustHost: true,
    providers: [
      {
        id: "linkgate",
        name: "linkgate",
        type: "oidc",
        issuer,
        clientId,
        clientSecret,
        authorization: { params: { scope } },
        checks: ["pkce", "state", "nonce"],
        // Otherwise the ID token is enough.
        idToken: false,
      },
    ],
    callbacks: {
      jwt: ({ token, account }) => (account ? { ...token, account } : token),
      session: ({ session, token }) => ({ ...session, account: token.account }),
    },
  };
}

async function toRequest(request: IncomingMessage, origin: string): Promise<Request> {
  const { method = "GET", headers, url = "" } = request;
  const body = method === "POST" ? (await request.toArray()).join("") : null;
  return new Request(origin + url, { method, headers: headers as Record<string, string>, body });
}

async function startAuthApp(config: AuthConfig) {
  const app = await startApp(async (request, answer) => {
    if (request.url === "/") return void answer.end("signed in");
    const response = await Auth(await toRequest(request, app.url), config);
    answer.setHeaders(response.headers);
    answer.writeHead(response.status).end(await response.text());
  });
  return app;
}

testFlows(
  {
    name: "@auth/core",
    version: npmVersion("@auth/core"),
    flows: ["code", "userinfo"],
    redirectUri: "http://127.0.0.1/auth/callback/linkgate",
  },
  async (setup) => {
    const app = await startAuthApp(configure(setup));
    try {
      const browser = new TestBrowser(app.url);
      const page = await browser.open(`${app.url}/auth/signin`);
      const request = await browser.press(page, "Sign in with linkgate");
      const { text } = await browser.open((await setup.allow(request.url)).href);
      if (text !== "signed in") throw new Error(`the app refused the sign-in: ${text}`);
      const session = await browser.open(`${app.url}/auth/session`);
      const { account } = JSON.parse(session.text) as { account: Account };
      return { code: await setup.use(account.access_token ?? ""), userinfo: account.providerAccountId };
    } finally {
      app.close();
    }
  },
);

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
    const known = [server, client] as const;
    const authenticated = [...known, oauth.ClientSecretBasic(clientSecret)] as const;

    const granted = await oauth.clientCredentialsGrantRequest(
      ...authenticated,
      { scope: "links:read" },
      OPTIONS,
    );
    const machine = await oauth.processClientCredentialsResponse(...known, granted);
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
        ...known,
        await oauth.authorizationCodeGrantRequest(
          ...authenticated,
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
    const userInfo = await oauth.userInfoRequest(...known, tokens.access_token, OPTIONS);
    const claims = await oauth.processUserInfoResponse(...known, sub, userInfo);

    const refreshToken = tokens.refresh_token ?? "";
    const renewed = await oauth.refreshTokenGrantRequest(...authenticated, refreshToken, OPTIONS);
    const refreshed = await oauth.processRefreshTokenResponse(...known, renewed);
    const refresh = await use(refreshed.access_token);

    async function isActive(): Promise<boolean> {
      const answer = await oauth.introspectionRequest(...authenticated, refreshed.access_token, OPTIONS);
      return (await oauth.processIntrospectionResponse(...known, answer)).active;
    }
    const user = await isActive();
    const revocation = await oauth.revocationRequest(...authenticated, refreshToken, OPTIONS);
    await oauth.processRevocationResponse(revocation);
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

async function startPassportApp({ issuer, clientId, clientSecret, scope }: ClientSetup) {
  const sessions = new Map<string, object>();
  const app = await startApp((request, answer) => {
    const handle = passport.authenticate(
      "oauth2",
      { session: false },
      (error: unknown, user?: string | false) =>
        answer
          .writeHead(user ? 200 : 401)
          .end(user || (error instanceof TokenError ? error.code : String(error))),
    );
    // What express and its session middleware add.
    const query = Object.fromEntries(new URL(request.url ?? "", app.url).searchParams);
    handle(Object.assign(request, { query, session: sessionOf(request) }), answer, () => answer.end());

    function sessionOf({ headers }: IncomingMessage): object {
      const id = /session=([\w-]+)/.exec(headers.cookie ?? "")?.[1] ?? randomUUID();
      const session = sessions.get(id) ?? {};
      sessions.set(id, session);
      answer.setHeader("set-cookie", `session=${id}; HttpOnly`);
      return session;
    }
  });
  passport.use(
    new Strategy(
      {
        authorizationURL: `${issuer}/oauth/authorize`,
        tokenURL: `${issuer}/oauth/token`,
        clientID: clientId,
        clientSecret,
        callbackURL: `${app.url}/callback`,
        scope: scope.split(" "),
        state: true,
        pkce: true,
      },
      (accessToken: string, _refreshToken: string, _profile: unknown, done: VerifyCallback) =>
        done(null, accessToken as Express.User),
    ),
  );
  return app;
}

testFlows(
  { name: "passport-oauth2", version: npmVersion("passport-oauth2"), flows: ["code", "error"] },
  async (setup) => {
    const app = await startPassportApp(setup);
    try {
      const browser = new TestBrowser(app.url);
      const request = await browser.open(app.url);
      const { status, text } = await browser.open((await setup.allow(request.url)).href);
      if (status !== 200) throw new Error(`the app refused the sign-in: ${text}`);
      const next = new URL((await browser.open(app.url)).url);
      const forged = new URLSearchParams({ code: "unknown", state: next.searchParams.get("state") ?? "" });
      const refused = await browser.open(`${app.url}/callback?${forged}`);
      return { code: await setup.use(text), error: refused.text };
    } finally {
      app.close();
    }
  },
);

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
    const { verifier, challenge } = await pkce();
    // The library passes the parameters of PKCE on; its types don't name them.
    const request = {
      redirect_uri: redirectUri,
      scope,
      state,
      code_challenge: challenge,
      code_challenge_method: "S256",
    };
    const { searchParams } = await allow(app.authorizeURL(request));
    if (searchParams.get("state") !== state) throw new Error("the state differs");
    const issued = { code: searchParams.get("code") ?? "", redirect_uri: redirectUri };
    const redemption = { ...issued, code_verifier: verifier };
    const tokens = await app.getToken(redemption);
    const code = await use(String(tokens.token.access_token));

    const refreshed = await tokens.refresh();
    const refresh = await use(String(refreshed.token.access_token));

    await refreshed.revokeAll();
    const refused = await app.getToken({ ...redemption, code: "unknown" }).catch((error) => error);
    return { clientCredentials, code, refresh, error: refused.data?.payload.error };
  },
);
