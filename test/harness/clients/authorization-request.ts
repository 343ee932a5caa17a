import * as oidc from "openid-client";
import { OPERATOR, type TestOrganization, type TestService } from "../service.ts";

/** The parameters of a request. `undefined` removes a default, and a list repeats the parameter. */
export type Fields = Record<string, string | string[] | undefined>;

export function formOf(fields: Fields): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    for (const one of value === undefined ? [] : [value].flat()) form.append(name, one);
  return form;
}

export async function pkce(): Promise<{ verifier: string; challenge: string }> {
  const verifier = oidc.randomPKCECodeVerifier();
  return { verifier, challenge: await oidc.calculatePKCECodeChallenge(verifier) };
}

export const REDIRECT_URI = "https://app.example.com/callback";

const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"; // RFC 7636 appendix B
/** The verifier for the default challenge of `authorizeUrl`. */
export const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/** Returns the URL of a valid authorization request, with `changes` applied. */
export function authorizeUrl(
  service: TestService,
  { clientId }: Pick<TestOrganization, "clientId">,
  changes: Fields = {},
): string {
  const query = formOf({
    response_type: "code",
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    scope: "links:write",
    state: "a-state",
    code_challenge: CHALLENGE,
    code_challenge_method: "S256",
    ...changes,
  });
  return `${service.url}/oauth/authorize?${query}`;
}

/** Creates a client with the redirect URI of the tests, and a user who owns another organization. */
export async function createApp(service: TestService, redirectUris = [REDIRECT_URI]) {
  const app = await service.createOrganization();
  await service.storage.clients.setRedirectUris(app.id, redirectUris, OPERATOR);
  const own = await service.createOrganization();
  const user = await service.createUser([own.id], undefined, "owner");
  return { app, own, user };
}
