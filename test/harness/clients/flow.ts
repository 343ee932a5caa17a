import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { TestOrganization, TestService, TestUser } from "../service.ts";
import { TestBrowser } from "./test-browser.ts";

/** The redirect URI of the tests. */
export const REDIRECT_URI = "https://app.example.com/callback";

/** Configures openid-client from the service's discovery document. */
export function discover(service: TestService, { clientId, clientSecret }: TestOrganization) {
  return oidc.discovery(new URL(service.url), clientId, clientSecret, undefined, {
    execute: [oidc.allowInsecureRequests],
  });
}

export type Authorization = {
  /** The URL that the app was called back at. */
  callback: URL;
  verifier: string;
  state: string;
  browser: TestBrowser;
};

type FlowOptions = {
  parameters?: Record<string, string>;
  redirectUri?: string;
  browser?: TestBrowser;
  organizationId?: string;
};

/** Starts the code flow with openid-client; the user signs in and allows access on the real pages. */
export async function authorize(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  {
    parameters = {},
    redirectUri = REDIRECT_URI,
    browser = new TestBrowser(service.url),
    organizationId,
  }: FlowOptions = {},
): Promise<Authorization> {
  const verifier = oidc.randomPKCECodeVerifier();
  const state = oidc.randomState();
  const url = oidc.buildAuthorizationUrl(await discover(service, app), {
    redirect_uri: redirectUri,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...(organizationId && { prompt: "consent" }), // to select it, the user has to be asked
    ...parameters,
  });
  let page = await browser.open(url.href);
  if (page.html.querySelector("#password")) page = await browser.signIn(page, user);
  // Otherwise, consent is remembered.
  if (new URL(page.url).origin === new URL(service.url).origin)
    page = await browser.press(page, "Allow", organizationId ? { organization_id: organizationId } : {});
  return { callback: new URL(page.url), verifier, state, browser };
}

/** Redeems the code of an authorization with openid-client. */
export async function redeem(
  service: TestService,
  app: TestOrganization,
  { callback, verifier, state }: Authorization,
) {
  return oidc.authorizationCodeGrant(await discover(service, app), callback, {
    pkceCodeVerifier: verifier,
    expectedState: state,
  });
}

/** Runs the whole code flow with openid-client; returns the tokens of `app` for `user`. */
export async function tokensFor(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  options: FlowOptions = {},
) {
  await service.storage.clients.setRedirectUris(app.id, [options.redirectUri ?? REDIRECT_URI], OPERATOR);
  return redeem(service, app, await authorize(service, app, user, options));
}
