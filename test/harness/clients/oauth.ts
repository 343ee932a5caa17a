import * as oidc from "openid-client";
import { OPERATOR } from "../../resources/events.ts";
import { REDIRECT_URI } from "./flow.ts";
import { type Page, Person } from "./person.ts";
import { bearer, postForm, type TestOrganization, type TestService, type TestUser } from "./service.ts";

/** The parameters of a request; an absent value takes a default away, a list repeats the parameter. */
export type Fields = Record<string, string | string[] | undefined>;

/** What an endpoint answered, read. */
export type Answer = { status: number; headers: Headers; text: string; body: Record<string, unknown> };

/** A form to be sent, or the query of an address. */
export function formOf(fields: Fields): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of value === undefined ? [] : [value].flat()) form.append(name, one);
  }
  return form;
}

/** Reads an answer; `body` is empty where it is no JSON object. */
export async function read(answer: Promise<Response>): Promise<Answer> {
  const response = await answer;
  const { status, headers } = response;
  const text = await response.text();
  const isJson = headers.get("content-type")?.includes("json") ?? false;
  return { status, headers, text, body: isJson ? JSON.parse(text) : {} };
}

/** `Authorization: Basic …` */
export function basic({ clientId, clientSecret }: Pick<TestOrganization, "clientId" | "clientSecret">) {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}` };
}

/** Asks an OAuth endpoint as an authenticated client. */
export function ask(service: TestService, endpoint: string, app: TestOrganization, fields: Fields) {
  return read(postForm(`${service.url}/oauth/${endpoint}`, formOf(fields), basic(app)));
}

/** A verifier and its challenge. */
export async function pkce(): Promise<{ verifier: string; challenge: string }> {
  const verifier = oidc.randomPKCECodeVerifier();
  return { verifier, challenge: await oidc.calculatePKCECodeChallenge(verifier) };
}

const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"; // RFC 7636 appendix B
/** The verifier of `authorizeUrl` without a challenge of one's own. */
export const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/** The address of a good authorization request, but for `changes`. */
export function authorizeUrl(
  service: TestService,
  { clientId }: TestOrganization,
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

/** A client with the redirect URI of the tests, and the owner of another organization. */
export async function createApp(service: TestService, redirectUris = [REDIRECT_URI]) {
  const app = await service.createOrganization();
  await service.storage.clients.setRedirectUris(app.id, redirectUris, OPERATOR);
  const own = await service.createOrganization();
  const user = await service.createUser([own.id], undefined, "owner");
  return { app, own, user };
}

/** Opens an authorization request and signs in; ends at the consent page. */
export async function openConsent(person: Person, user: TestUser, url: string): Promise<Page> {
  const page = await person.open(url);
  return page.html.querySelector("#password") ? person.signIn(page, user) : page;
}

/** Where the app is called back after the person has allowed the request. */
export async function allow(
  service: TestService,
  user: TestUser,
  url: string,
  { person = new Person(service.url), organizationId }: { person?: Person; organizationId?: string } = {},
): Promise<URL> {
  const consent = await openConsent(person, user, url);
  const fields: Record<string, string> = organizationId ? { organization_id: organizationId } : {};
  return new URL((await person.press(consent, "Allow", fields)).url);
}

/** A code that can be redeemed with `VERIFIER`. */
export async function codeFor(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  { changes, ...options }: { changes?: Fields; person?: Person; organizationId?: string } = {},
): Promise<string> {
  const callback = await allow(service, user, authorizeUrl(service, app, changes), options);
  const code = callback.searchParams.get("code");
  if (!code) throw new Error(`no code: ${callback.href}`);
  return code;
}

/** Redeems a code as its client, but for `changes`. */
export function redeemCode(service: TestService, app: TestOrganization, code: string, changes: Fields = {}) {
  return ask(service, "token", app, {
    grant_type: "authorization_code",
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: VERIFIER,
    ...changes,
  });
}

/** Asks for new tokens with a refresh token. */
export function refresh(service: TestService, app: TestOrganization, token: string, fields: Fields = {}) {
  return ask(service, "token", app, { grant_type: "refresh_token", refresh_token: token, ...fields });
}

/** Whether an access token opens the API, asked there. */
export async function opensApi(service: TestService, token: unknown): Promise<boolean> {
  const { status } = await fetch(`${service.url}/v1/organization`, { headers: bearer(String(token)) });
  if (status !== 200 && status !== 401) throw new Error(`neither open nor shut: ${status}`);
  return status === 200;
}

/** What the token endpoint gave for a code flow; strings. */
export async function newTokens(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  options: Parameters<typeof codeFor>[3] = {},
): Promise<{ accessToken: string; refreshToken: string; code: string }> {
  const code = await codeFor(service, app, user, options);
  const { status, body, text } = await redeemCode(service, app, code);
  if (status !== 200) throw new Error(`no tokens: ${text}`);
  return { accessToken: String(body.access_token), refreshToken: String(body.refresh_token), code };
}

/** Sends the form of a page with the cookies of a browser, and follows nothing. */
export async function sendForm(
  browser: Person,
  page: Page,
  fields: Record<string, string | undefined>,
): Promise<Response> {
  const form = page.html.querySelector("form");
  const action = new URL(form?.attributes.action ?? "", page.url).href;
  const csrf = form?.querySelector("[name=csrf]")?.attributes.value;
  const cookie = await browser.jar.getCookieString(action);
  return postForm(action, formOf({ csrf, ...fields }), { cookie });
}
