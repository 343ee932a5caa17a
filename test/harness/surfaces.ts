import { apiAt } from "./clients/api.ts";
import { firstPartyToken } from "./clients/dashboard.ts";
import { REDIRECT_URI } from "./clients/flow.ts";
import {
  authorizeUrl,
  codeFor,
  createApp,
  pkce,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
} from "./clients/oauth.ts";
import { TestBrowser } from "./clients/test-browser.ts";
import type { TestOrganization, TestService, TestUser } from "./service.ts";
import { bearer } from "./service.ts";

/** An app of one organization that a user authorized for another one, with everything that depends on any of them. */
export type Tenants = {
  app: TestOrganization;
  own: TestOrganization;
  user: TestUser;
  /** Signed in before the switch. */
  browser: TestBrowser;
  accessToken: string;
  refreshToken: string;
  code: string;
  /** The client's own token. */
  clientToken: string;
  /** A token for the dashboard. */
  firstParty: string;
  /** The links of `own` and `app`. */
  links: { own: { id: string; slug: string }; app: { id: string; slug: string } };
};

/** Creates the tenants of one test. */
export async function createTenants(service: TestService): Promise<Tenants> {
  const { app, own, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
  const code = await codeFor(service, app, user, { browser });
  const clientToken = await service.token(app);
  const linkOf = async (organization: TestOrganization) =>
    apiAt(service.url, await service.token(organization)).createLink();
  return {
    app,
    own,
    user,
    browser,
    accessToken,
    refreshToken,
    code,
    clientToken,
    firstParty: await firstPartyToken(service, user),
    links: { own: await linkOf(own), app: await linkOf(app) },
  };
}

/** The client of resources that run as a separate service. */
export type ResourceServer = TestOrganization;

type Context = { service: TestService; resourceServer: ResourceServer };
type Surface = (tenants: Tenants, context: Context) => Promise<string>;

/**
 * What each part of the service answers, in short: the status, with the code of an error, or whether a token is active.
 * Redeeming the code comes last, because a code can be redeemed once.
 */
export const SURFACES = {
  "the API with a user's token": ({ accessToken }, { service }) => callApi(service, "/v1/links", accessToken),
  "the API with a client's token": ({ clientToken }, { service }) =>
    callApi(service, "/v1/links", clientToken),
  "MCP with a user's token": async ({ accessToken }, { service }) =>
    outcomeOf(
      await fetch(`${service.url}/mcp`, {
        method: "POST",
        headers: {
          ...bearer(accessToken),
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
      }),
    ),
  "client credentials": async ({ app }, { service }) =>
    tokenOutcome(await postAsClient(service, "token", app, { grant_type: "client_credentials" })),
  "a refresh": async ({ app, refreshToken }, { service }) =>
    tokenOutcome(await refresh(service, app, refreshToken)),
  "a pushed authorization request": async ({ app }, { service }) =>
    tokenOutcome(
      await postAsClient(service, "par", app, {
        response_type: "code",
        client_id: app.clientId,
        redirect_uri: REDIRECT_URI,
        scope: "links:write",
        code_challenge: (await pkce()).challenge,
        code_challenge_method: "S256",
      }),
    ),
  "an authorization request": async ({ app, browser }, { service }) => {
    const { url } = await browser.open(authorizeUrl(service, app, { prompt: "none" }));
    const { searchParams } = new URL(url);
    return searchParams.get("error") ?? (searchParams.has("code") ? "code" : "no answer");
  },
  "introspection by the client of a user's token": ({ app, accessToken }, { service }) =>
    introspect(service, app, accessToken),
  "introspection by the client of its refresh token": ({ app, refreshToken }, { service }) =>
    introspect(service, app, refreshToken),
  "introspection by the resource server": ({ accessToken }, { service, resourceServer }) =>
    introspect(service, resourceServer, accessToken),
  "the dashboard with a session": async ({ browser, own }, { service }) =>
    outcomeOf(await openWithCookies(browser, `${service.url}/dashboard/organizations/${own.id}`)),
  "the dashboard with a token": async ({ own, firstParty }, { service }) =>
    outcomeOf(await openDashboard(service, `/dashboard/organizations/${own.id}`, firstParty)),
  "a change in the dashboard": async ({ own, firstParty }, { service }) =>
    outcomeOf(
      await openDashboard(service, `/dashboard/organizations/${own.id}`, firstParty, {
        method: "PATCH",
        body: JSON.stringify({ name: own.name }),
      }),
    ),
  "a sign-in": async ({ user: { username, password } }, { service }) =>
    outcomeOf(
      await fetch(`${service.url}/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify({ username, password }),
      }),
    ),
  "a short link of the organization": ({ links }, { service }) => follow(service, links.own.slug),
  "a short link of the app's organization": ({ links }, { service }) => follow(service, links.app.slug),
  "redeeming a code": async ({ app, code }, { service }) =>
    tokenOutcome(await redeemCode(service, app, code)),
} satisfies Record<string, Surface>;

export type SurfaceName = keyof typeof SURFACES;

/** Returns the outcome of each surface. */
export async function tryAll(tenants: Tenants, context: Context): Promise<Record<SurfaceName, string>> {
  const outcomes: Record<string, string> = {};
  for (const [name, surface] of Object.entries(SURFACES)) outcomes[name] = await surface(tenants, context);
  return outcomes as Record<SurfaceName, string>;
}

async function outcomeOf(response: Response): Promise<string> {
  const { status } = response;
  if (status < 400) return String(status);
  const isJson = response.headers.get("content-type")?.includes("json");
  const body = isJson ? ((await response.json()) as { code?: string }) : {};
  return `${status} ${body.code ?? ""}`.trim();
}

function tokenOutcome({ status, body }: { status: number; body: { error?: unknown } }): string {
  return status < 300 ? "issued" : `${status} ${body.error}`;
}

async function callApi(service: TestService, path: string, token: string): Promise<string> {
  return outcomeOf(await fetch(service.url + path, { headers: bearer(token) }));
}

async function introspect(service: TestService, client: TestOrganization, token: string): Promise<string> {
  const { body } = await postAsClient(service, "introspect", client, { token });
  if (!body.active) return JSON.stringify(body) === '{"active":false}' ? "inactive" : JSON.stringify(body);
  return body.suspended ? "active, suspended" : "active";
}

async function openWithCookies({ jar }: TestBrowser, url: string): Promise<Response> {
  const cookie = await jar.getCookieString(url);
  return fetch(url, { headers: { cookie, accept: "application/json" }, redirect: "manual" });
}

function openDashboard(service: TestService, path: string, token: string, init: RequestInit = {}) {
  const headers = { ...bearer(token), accept: "application/json", "content-type": "application/json" };
  return fetch(service.url + path, { ...init, headers, redirect: "manual" });
}

async function follow(service: TestService, slug: string): Promise<string> {
  const response = await fetch(`${service.url}/${slug}`, { redirect: "manual" });
  await response.arrayBuffer();
  return String(response.status);
}
