import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import { bearer, postForm, type TestOrganization, type TestService, type TestUser } from "../service.ts";
import { REDIRECT_URI } from "./flow.ts";
import { type Page, TestBrowser } from "./test-browser.ts";

/** The parameters of a request. `undefined` removes a default, and a list repeats the parameter. */
export type Fields = Record<string, string | string[] | undefined>;

/** A response whose body has been read. */
export type Answer = { status: number; headers: Headers; text: string; body: Record<string, unknown> };

/** Returns a form body or a query. */
export function formOf(fields: Fields): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of value === undefined ? [] : [value].flat()) form.append(name, one);
  }
  return form;
}

/** Reads a response; `body` is empty unless it is a JSON object. */
export async function read(pending: Promise<Response>): Promise<Answer> {
  const response = await pending;
  const { status, headers } = response;
  const text = await response.text();
  const isJson = headers.get("content-type")?.includes("json") ?? false;
  return { status, headers, text, body: isJson ? JSON.parse(text) : {} };
}

/** Returns an `Authorization: Basic …` header. */
export function basic({ clientId, clientSecret }: Pick<TestOrganization, "clientId" | "clientSecret">) {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}` };
}

/** Sends a request to an OAuth endpoint as an authenticated client. */
export function postAsClient(service: TestService, endpoint: string, app: TestOrganization, fields: Fields) {
  return read(postForm(`${service.url}/oauth/${endpoint}`, formOf(fields), basic(app)));
}

/** Returns a new code verifier and its challenge. */
export async function pkce(): Promise<{ verifier: string; challenge: string }> {
  const verifier = oidc.randomPKCECodeVerifier();
  return { verifier, challenge: await oidc.calculatePKCECodeChallenge(verifier) };
}

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

/** Opens an authorization request and signs in if needed; returns the consent page, even if consent is remembered. */
export function openConsent(browser: TestBrowser, user: TestUser, url: string): Promise<Page> {
  return openSignedIn(browser, user, withConsent(url));
}

/** Opens an authorization request and signs in if needed. */
async function openSignedIn(browser: TestBrowser, user: TestUser, url: string): Promise<Page> {
  const page = await browser.open(url);
  return page.html.querySelector("#password") ? browser.signIn(page, user) : page;
}

/** Makes an authorization request ask for consent, unless it says otherwise. */
function withConsent(url: string): string {
  const asking = new URL(url);
  if (!asking.searchParams.has("prompt")) asking.searchParams.set("prompt", "consent");
  return asking.href;
}

/** Allows an authorization request, unless consent is remembered; returns the URL that the app is called back at. */
export async function allow(
  service: TestService,
  user: TestUser,
  url: string,
  {
    browser = new TestBrowser(service.url),
    organizationId,
  }: { browser?: TestBrowser; organizationId?: string } = {},
): Promise<URL> {
  // To select an organization, the user has to be asked.
  const consent = await openSignedIn(browser, user, organizationId ? withConsent(url) : url);
  if (new URL(consent.url).origin !== new URL(service.url).origin) return new URL(consent.url);
  const fields: Record<string, string> = organizationId ? { organization_id: organizationId } : {};
  return new URL((await browser.press(consent, "Allow", fields)).url);
}

/** Returns a code that can be redeemed with `VERIFIER`. */
export async function codeFor(
  service: TestService,
  app: TestOrganization,
  user: TestUser,
  { changes, ...options }: { changes?: Fields; browser?: TestBrowser; organizationId?: string } = {},
): Promise<string> {
  const callback = await allow(service, user, authorizeUrl(service, app, changes), options);
  const code = callback.searchParams.get("code");
  if (!code) throw new Error(`no code: ${callback.href}`);
  return code;
}

/** Redeems a code as its client, with `changes` applied. */
export function redeemCode(service: TestService, app: TestOrganization, code: string, changes: Fields = {}) {
  return postAsClient(service, "token", app, {
    grant_type: "authorization_code",
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: VERIFIER,
    ...changes,
  });
}

/** Requests new tokens with a refresh token. */
export function refresh(service: TestService, app: TestOrganization, token: string, fields: Fields = {}) {
  return postAsClient(service, "token", app, {
    grant_type: "refresh_token",
    refresh_token: token,
    ...fields,
  });
}

/** Returns whether the API accepts an access token. */
export async function isAcceptedByApi(service: TestService, token: unknown): Promise<boolean> {
  const { status } = await fetch(`${service.url}/v1/organization`, { headers: bearer(String(token)) });
  if (status !== 200 && status !== 401) throw new Error(`unexpected status ${status}`);
  return status === 200;
}

/** Runs the code flow; returns its tokens and its code, which is redeemed. */
export async function runCodeFlow(
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

/** Sends the form of a page with the cookies of a browser, without following the redirect. */
export async function sendForm(
  browser: TestBrowser,
  page: Page,
  fields: Record<string, string | undefined>,
): Promise<Response> {
  const form = page.html.querySelector("form");
  const action = new URL(form?.attributes.action ?? "", page.url).href;
  const csrf = form?.querySelector("[name=csrf]")?.attributes.value;
  const cookie = await browser.jar.getCookieString(action);
  return postForm(action, formOf({ csrf, ...fields }), { cookie });
}
