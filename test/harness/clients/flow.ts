import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { TestOrganization, TestService, TestUser } from "../service.ts";
import { allow, type Choice } from "./oauth.ts";

export const REDIRECT_URI = "https://app.example.com/callback";

/** Configures openid-client from the service's discovery document. Without another authentication, it sends the secret. */
export function discover(
  { url }: TestService,
  { clientId, clientSecret }: Pick<TestOrganization, "clientId"> & Partial<TestOrganization>,
  authentication?: oidc.ClientAuth,
) {
  const execute = [oidc.allowInsecureRequests];
  return oidc.discovery(new URL(url), clientId, clientSecret, authentication, { execute });
}

export type Authorization = Awaited<ReturnType<typeof authorize>>;

type FlowOptions = { parameters?: Record<string, string>; redirectUri?: string } & Choice;

/** Starts the code flow with openid-client; the user signs in and allows access on the real pages. */
export async function authorize(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  { parameters = {}, redirectUri = REDIRECT_URI, ...choice }: FlowOptions = {},
) {
  const verifier = oidc.randomPKCECodeVerifier();
  const state = oidc.randomState();
  const url = oidc.buildAuthorizationUrl(await discover(service, app), {
    redirect_uri: redirectUri,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...parameters,
  });
  return { callback: await allow(service, user, url.href, choice), verifier, state };
}

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

export async function tokensFor(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  options: FlowOptions = {},
) {
  await service.storage.clients.setRedirectUris(app.id, [options.redirectUri ?? REDIRECT_URI], OPERATOR);
  return redeem(service, app, await authorize(service, app, user, options));
}
