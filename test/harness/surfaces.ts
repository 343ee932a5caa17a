import type { ProblemBody } from "../../resources/http/problem.ts";
import { apiAt, type Reply } from "./clients/api.ts";
import { codeFor, runCodeFlow } from "./clients/authorization.ts";
import { authorizeUrl, createApp } from "./clients/authorization-request.ts";
import { firstPartyToken } from "./clients/dashboard.ts";
import { postMcp } from "./clients/mcp.ts";
import { type Answer, postAsClient, redeemCode, refresh } from "./clients/oauth.ts";
import { logIn } from "./clients/second-factor.ts";
import { TestBrowser } from "./clients/test-browser.ts";
import { bearer, type TestOrganization, type TestService } from "./service.ts";

export type Tenants = Awaited<ReturnType<typeof createTenants>>;

/** Creates an app of one organization that a user authorized for another one, with everything that depends on any of them. */
export async function createTenants(service: TestService) {
  const { app, own, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
  const code = await codeFor(service, app, user, { browser });
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
    clientToken: await service.token(app),
    firstParty: await firstPartyToken(service, user),
    links: { own: await linkOf(own), app: await linkOf(app) },
  };
}

type Context = { service: TestService; resourceServer: TestOrganization };

/**
 * What each part of the service answers, in short: the status, with the code of an error, or whether a token is active.
 * Redeeming the code comes last, because a code can be redeemed once.
 */
function surfacesOf(
  { app, own, user, browser, accessToken, refreshToken, code, clientToken, firstParty, links }: Tenants,
  { service, resourceServer }: Context,
) {
  const api = (token?: string) => apiAt(service.url, token);
  const dashboard = `/dashboard/organizations/${own.id}`;
  const follow = async ({ slug }: { slug: string }) => String((await api().get(`/${slug}`)).status);
  const introspect = async (client: TestOrganization, token: string) => {
    const { body } = await postAsClient(service, "introspect", client, { token });
    if (!body.active) return JSON.stringify(body) === '{"active":false}' ? "inactive" : JSON.stringify(body);
    return body.suspended ? "active, suspended" : "active";
  };
  return {
    "the API with a user's token": () => outcomeOf(api(accessToken).get("/v1/links")),
    "the API with a client's token": () => outcomeOf(api(clientToken).get("/v1/links")),
    "MCP with a user's token": () =>
      outcomeOf(postMcp(service.urls.mcp, { jsonrpc: "2.0", id: 1, method: "ping" }, bearer(accessToken))),
    "client credentials": () =>
      tokenOutcome(postAsClient(service, "token", app, { grant_type: "client_credentials" })),
    "a refresh": () => tokenOutcome(refresh(service, app, refreshToken)),
    "a pushed authorization request": () => {
      const { searchParams } = new URL(authorizeUrl(service, app));
      return tokenOutcome(postAsClient(service, "par", app, Object.fromEntries(searchParams)));
    },
    "an authorization request": async () => {
      const { url } = await browser.open(authorizeUrl(service, app, { prompt: "none" }));
      const { searchParams } = new URL(url);
      return searchParams.get("error") ?? (searchParams.has("code") ? "code" : "no answer");
    },
    "introspection by the client of a user's token": () => introspect(app, accessToken),
    "introspection by the client of its refresh token": () => introspect(app, refreshToken),
    "introspection by the resource server": () => introspect(resourceServer, accessToken),
    "the dashboard with a session": async () => {
      const cookie = await browser.jar.getCookieString(service.url + dashboard);
      return outcomeOf(api().get(dashboard, { accept: "application/json", cookie }));
    },
    "the dashboard with a token": () => outcomeOf(api(firstParty).get(dashboard)),
    "a change in the dashboard": () =>
      outcomeOf(api(firstParty).send("PATCH", dashboard, { json: { name: own.name } })),
    "a sign-in": () => outcomeOf(logIn(service, user)),
    "a short link of the organization": () => follow(links.own),
    "a short link of the app's organization": () => follow(links.app),
    "redeeming a code": () => tokenOutcome(redeemCode(service, app, code)),
  };
}

export type SurfaceName = keyof ReturnType<typeof surfacesOf>;

export async function tryAll(tenants: Tenants, context: Context): Promise<Record<SurfaceName, string>> {
  const outcomes: Record<string, string> = {};
  for (const [name, run] of Object.entries(surfacesOf(tenants, context))) outcomes[name] = await run();
  return outcomes as Record<SurfaceName, string>;
}

async function outcomeOf(pending: Promise<Reply<unknown>>): Promise<string> {
  const { status, body } = await pending;
  return status < 400 ? String(status) : `${status} ${(body as ProblemBody).code}`;
}

async function tokenOutcome(pending: Promise<Answer>): Promise<string> {
  const { status, body } = await pending;
  return status < 300 ? "issued" : `${status} ${body.error}`;
}
