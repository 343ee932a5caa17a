import { randomUUID } from "node:crypto";
import type { ExecutionContext } from "ava";
import { createRemoteJWKSet, decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose";
import { type Fields, formOf, pkce } from "../../harness/clients/authorization-request.ts";
import { type Answer, basic, read } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { bearer, postForm } from "../../harness/service.ts";
import { type Client, type Deployment, REDIRECT_URI } from "./deployment.ts";

type Metadata = Record<string, unknown> &
  Record<"authorization_endpoint" | "token_endpoint" | "userinfo_endpoint" | "jwks_uri", string>;

/**
 * Signs in, and presses a button of the consent page, wherever the pages ask for it. Returns the pages that were shown, and
 * the address of the page or redirect at the end.
 */
export async function follow(
  { issuer, user }: Pick<Deployment, "issuer" | "user">,
  browser: TestBrowser,
  opened: Page,
  button = "Allow",
) {
  const shown: string[] = [];
  let page = opened;
  for (let step = 0; step < 4 && page.url.startsWith(issuer) && page.status === 200; step++) {
    const isSignIn = page.html.querySelector("#password") !== null;
    shown.push(isSignIn ? "sign-in" : "consent");
    page = isSignIn ? await browser.press(page, "Sign in", user) : await browser.press(page, button);
  }
  return { end: new URL(page.url), shown };
}

/** What the suite is: a client of the deployment. Its requests have PKCE, which linkgate requires of every client. */
export async function createRelyingParty(deployment: Deployment) {
  const { issuer } = deployment;
  const { body } = await read(fetch(`${issuer}/.well-known/openid-configuration`));
  const metadata = body as Metadata;
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));

  async function authorize(
    changes: Fields = {},
    { browser = new TestBrowser(issuer), client = deployment.clients[0], method = "GET" } = {},
  ) {
    const { verifier, challenge } = await pkce();
    const parameters = formOf({
      response_type: "code",
      client_id: client.id,
      redirect_uri: REDIRECT_URI,
      scope: "openid",
      state: randomUUID(),
      nonce: randomUUID(),
      code_challenge: challenge,
      code_challenge_method: "S256",
      ...changes,
    });
    const endpoint = metadata.authorization_endpoint;
    const page =
      method === "POST"
        ? await browser.open(endpoint, { method, body: parameters })
        : await browser.open(`${endpoint}?${parameters}`);
    return { parameters, verifier, browser, ...(await follow(deployment, browser, page)) };
  }

  function redeem(
    { end, verifier }: Awaited<ReturnType<typeof authorize>>,
    client: Client = deployment.clients[0],
  ): Promise<Answer> {
    const code = end.searchParams.get("code") ?? "";
    return requestTokens(
      { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI, code_verifier: verifier },
      client,
    );
  }

  function requestTokens(fields: Fields, { id, secret }: Client = deployment.clients[0]): Promise<Answer> {
    return read(
      postForm(metadata.token_endpoint, formOf(fields), basic({ clientId: id, clientSecret: secret })),
    );
  }

  /** OpenID Connect Core §3.1.3.7. */
  async function verifyIdToken(
    t: ExecutionContext,
    idToken: unknown,
    nonce: string | null,
  ): Promise<JWTPayload> {
    t.is(decodeProtectedHeader(String(idToken)).alg, "RS256");
    const { payload } = await jwtVerify(String(idToken), keys, {
      issuer,
      audience: deployment.clients[0].id,
    });
    t.is(payload.nonce, nonce ?? undefined);
    t.true(Number(payload.exp) > Date.now() / 1000);
    t.true(Math.abs(Number(payload.iat) - Date.now() / 1000) < 60);
    t.regex(String(payload.sub), /^[\x21-\x7e]{1,255}$/);
    return payload;
  }

  async function succeed(
    t: ExecutionContext,
    changes: Fields = {},
    options?: Parameters<typeof authorize>[1],
  ) {
    const authorization = await authorize(changes, options);
    const { end, parameters } = authorization;
    t.is(end.origin + end.pathname, REDIRECT_URI, end.href);
    t.is(end.searchParams.get("error"), null, end.href);
    t.is(end.searchParams.get("state"), parameters.get("state"));
    t.is(end.searchParams.get("iss"), issuer);
    const { status, headers, body: tokens } = await redeem(authorization);
    t.is(status, 200, JSON.stringify(tokens));
    t.is(headers.get("cache-control"), "no-store");
    t.is(String(tokens.token_type).toLowerCase(), "bearer");
    const claims = await verifyIdToken(t, tokens.id_token, parameters.get("nonce"));
    const info = await userInfo({ headers: bearer(String(tokens.access_token)) });
    t.is(info.status, 200);
    t.is(info.body.sub, claims.sub);
    return { ...authorization, tokens, claims };
  }

  function userInfo(init: RequestInit): Promise<Answer> {
    return read(fetch(metadata.userinfo_endpoint, init));
  }

  return { metadata, authorize, redeem, requestTokens, verifyIdToken, succeed, userInfo };
}
