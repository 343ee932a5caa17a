import * as oidc from "openid-client";
import {
  OPERATOR,
  postForm,
  startTestService,
  type TestOrganization,
  type TestService,
  type TestUser,
} from "../service.ts";
import { apiAt } from "./api.ts";
import { authorizeUrl, createApp, type Fields, formOf, REDIRECT_URI } from "./authorization-request.ts";
import { type Answer, type RegisteredClient, redeemCode, redemptionOf, requestTokens } from "./oauth.ts";
import { type Page, TestBrowser } from "./test-browser.ts";

/** Opens an authorization request and signs in if needed; returns the consent page, even if consent is remembered. */
export const openConsent = (browser: TestBrowser, user: TestUser, url: string) =>
  openSignedIn(browser, user, withConsent(url));

async function openSignedIn(browser: TestBrowser, user: TestUser, url: string): Promise<Page> {
  const page = await browser.open(url);
  return page.html.querySelector("#password") ? browser.signIn(page, user) : page;
}

function withConsent(url: string): string {
  const asking = new URL(url);
  if (!asking.searchParams.has("prompt")) asking.searchParams.set("prompt", "consent");
  return asking.href;
}

/** Where a user allows an authorization request, and for which organization. */
export type Choice = { browser?: TestBrowser; organizationId?: string };

/** Allows an authorization request, unless consent is remembered; returns the URL that the app is called back at. */
export async function allow(
  service: TestService,
  user: TestUser,
  url: string,
  { browser = new TestBrowser(service.url), organizationId }: Choice = {},
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
  app: Pick<TestOrganization, "clientId">,
  user: TestUser,
  { changes, ...choice }: { changes?: Fields } & Choice = {},
): Promise<string> {
  const callback = await allow(service, user, authorizeUrl(service, app, changes), choice);
  const code = callback.searchParams.get("code");
  if (!code) throw new Error(`no code: ${callback.href}`);
  return code;
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
export async function sendForm(browser: TestBrowser, page: Page, fields: Record<string, string | undefined>) {
  const form = page.html.querySelector("form");
  const action = new URL(form?.attributes.action ?? "", page.url).href;
  const csrf = form?.querySelector("[name=csrf]")?.attributes.value;
  const cookie = await browser.jar.getCookieString(action);
  return postForm(action, formOf({ csrf, ...fields }), { cookie });
}

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

/** Runs the code flow of a registered client on the real pages, for MCP by default; returns the token response. */
export async function connectRegistered(
  service: TestService,
  client: RegisteredClient,
  user: TestUser,
  { resource = service.urls.mcp, scope, ...choice }: { resource?: string; scope?: string } & Choice = {},
): Promise<Answer> {
  const redirect_uri = client.redirectUri;
  const changes = { redirect_uri, resource, scope };
  const code = await codeFor(service, client, user, { changes, ...choice });
  return requestTokens(service, client, { ...redemptionOf(code), redirect_uri, resource });
}

/** Shares a service that has an organization. `api` has a token of it, and `anonymous` has none. */
export async function shareApi(settings: Record<string, string> = {}) {
  const service = await startTestService(settings);
  const app = await service.createOrganization();
  const token = await service.token(app);
  const { url } = service;
  return { service, app, token, api: apiAt(url, token), anonymous: apiAt(url) };
}

/** Shares a service that has an app, and a user who owns another organization; and `other` ones. */
export async function shareApp(settings: Record<string, string> = {}, redirectUris?: string[]) {
  const service = await startTestService(settings);
  const created = await createApp(service, redirectUris);
  return { service, ...created, other: await createApp(service) };
}
