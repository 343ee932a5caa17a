import * as oidc from "openid-client";
import { OPERATOR } from "../../resources/events.ts";
import { Person } from "./person.ts";
import type { TestOrganization, TestService, TestUser } from "./service.ts";

/** Where the apps of the tests are redirected to. */
export const REDIRECT_URI = "https://app.example.com/callback";

/** openid-client, configured from the service's own discovery document. */
export function discover(service: TestService, { clientId, clientSecret }: TestOrganization) {
  return oidc.discovery(new URL(service.url), clientId, clientSecret, undefined, {
    execute: [oidc.allowInsecureRequests],
  });
}

export type Authorization = {
  /** The address that the app was called back at. */
  callback: URL;
  verifier: string;
  state: string;
  person: Person;
};

type FlowOptions = {
  parameters?: Record<string, string>;
  redirectUri?: string;
  person?: Person;
  organizationId?: string;
};

/** Lets a person sign in and allow the access, through the real pages, as the app of an organization asks. */
export async function authorize(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  {
    parameters = {},
    redirectUri = REDIRECT_URI,
    person = new Person(service.url),
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
    ...parameters,
  });
  let page = await person.open(url.href);
  if (page.html.querySelector("#password")) page = await person.signIn(page, user);
  page = await person.press(page, "Allow", organizationId ? { organization_id: organizationId } : {});
  return { callback: new URL(page.url), verifier, state, person };
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

/** From nothing to tokens: an app of `app` acts for `user`. */
export async function tokensFor(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  options: FlowOptions = {},
) {
  await service.storage.clients.setRedirectUris(app.id, [options.redirectUri ?? REDIRECT_URI], OPERATOR);
  return redeem(service, app, await authorize(service, app, user, options));
}
