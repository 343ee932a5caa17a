import * as oidc from "openid-client";
import {
  bearer,
  OPERATOR,
  postForm,
  startTestService,
  type TestOrganization,
  type TestService,
  type TestUser,
} from "../service.ts";
import { apiAt, type Reply, read as readReply } from "./api.ts";
import { type Page, TestBrowser } from "./test-browser.ts";

/** The parameters of a request. `undefined` removes a default, and a list repeats the parameter. */
export type Fields = Record<string, string | string[] | undefined>;

export type Answer = Reply<Record<string, unknown>>;

export function formOf(fields: Fields): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    for (const one of value === undefined ? [] : [value].flat()) form.append(name, one);
  return form;
}

/** Reads a response; `body` is empty unless it is a JSON object. */
export async function read(pending: Promise<Response>): Promise<Answer> {
  const reply = await readReply<Answer["body"] | undefined>(await pending);
  return { ...reply, body: reply.body ?? {} };
}

/** Returns the status of a response, with the code of its error if it has one. */
export async function outcomeOf(pending: Promise<Answer>): Promise<string> {
  const { status, body } = await pending;
  return body.error ? `${status} ${body.error}` : String(status);
}

/** The client of resources that run as a separate service, with the secret that `RESOURCE_SERVER_SECRET` has to be. */
export const RESOURCE_SERVER: TestOrganization = {
  id: "",
  name: "",
  clientId: "resource-server",
  clientSecret: "a-secret-of-the-resource-server-0123456789",
};

export function basic({ clientId, clientSecret }: Pick<TestOrganization, "clientId" | "clientSecret">) {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}` };
}

export function postAsClient(service: TestService, endpoint: string, app: TestOrganization, fields: Fields) {
  return read(postForm(`${service.url}/oauth/${endpoint}`, formOf(fields), basic(app)));
}

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

export function redeemCode(service: TestService, app: TestOrganization, code: string, changes: Fields = {}) {
  return postAsClient(service, "token", app, { ...redemptionOf(code), ...changes });
}

export function redemptionOf(code: string) {
  return { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI, code_verifier: VERIFIER };
}

export function refresh(service: TestService, app: TestOrganization, token: string, fields: Fields = {}) {
  const refreshing = { grant_type: "refresh_token", refresh_token: token };
  return postAsClient(service, "token", app, { ...refreshing, ...fields });
}

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
export async function sendForm(browser: TestBrowser, page: Page, fields: Record<string, string | undefined>) {
  const form = page.html.querySelector("form");
  const action = new URL(form?.attributes.action ?? "", page.url).href;
  const csrf = form?.querySelector("[name=csrf]")?.attributes.value;
  const cookie = await browser.jar.getCookieString(action);
  return postForm(action, formOf({ csrf, ...fields }), { cookie });
}

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

export type RegisteredClient = { clientId: string; redirectUri: string };

export function postRegistration(service: TestService, body: unknown, headers: object = {}): Promise<Answer> {
  return read(
    fetch(`${service.url}/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    }),
  );
}

export async function register(
  service: TestService,
  metadata: { redirect_uris: string[]; client_name?: string },
): Promise<RegisteredClient> {
  const { status, body, text } = await postRegistration(service, metadata);
  if (status !== 201) throw new Error(`the registration failed: ${text}`);
  return { clientId: String(body.client_id), redirectUri: metadata.redirect_uris[0] as string };
}

/** Sends a token request of a registered client, which is public. */
export function requestTokens(
  service: TestService,
  { clientId }: Pick<RegisteredClient, "clientId">,
  fields: Fields,
): Promise<Answer> {
  return read(postForm(`${service.url}/oauth/token`, formOf({ client_id: clientId, ...fields })));
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
