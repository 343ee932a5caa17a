import test from "ava";
import type { Role } from "../../resources/access/scopes.ts";
import { openConsent, runCodeFlow, sendForm } from "../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { isAcceptedByApi, outcomeOf, postAsClient, RESOURCE_SERVER } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";
import { createTenants, type SurfaceName, type Tenants, tryAll } from "../harness/surfaces.ts";

export const databases = "all";

const service = await startTestService({ RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret });
const context = { service, resourceServer: RESOURCE_SERVER };
const { disabledAccounts, accountDeletions, clients, grants, members } = service.storage;
const { disabledLinks, organizations, suspensions } = service.storage;

type Outcomes = Record<SurfaceName, string>;

const WORKING: Outcomes = {
  "the API with a user's token": "200",
  "the API with a client's token": "200",
  "MCP with a user's token": "200",
  "client credentials": "issued",
  "a refresh": "issued",
  "a pushed authorization request": "issued",
  "an authorization request": "code",
  "introspection by the client of a user's token": "active",
  "introspection by the client of its refresh token": "active",
  "introspection by the resource server": "active",
  "the dashboard with a session": "200",
  "the dashboard with a token": "200",
  "a change in the dashboard": "200",
  "a sign-in": "200",
  "a short link of the organization": "302",
  "a short link of the app's organization": "302",
  "redeeming a code": "issued",
};

const NO_USER_TOKENS: Partial<Outcomes> = {
  "the API with a user's token": "401 invalid_token",
  "MCP with a user's token": "401 invalid_token",
  "a refresh": "400 invalid_grant",
  "an authorization request": "login_required",
  "introspection by the client of a user's token": "inactive",
  "introspection by the client of its refresh token": "inactive",
  "introspection by the resource server": "inactive",
  "redeeming a code": "400 invalid_grant",
};
const NO_SESSIONS: Partial<Outcomes> = {
  "the dashboard with a session": "401 sign_in_required",
  "the dashboard with a token": "401 sign_in_required",
  "a change in the dashboard": "401 sign_in_required",
};
const NOT_A_MEMBER: Partial<Outcomes> = {
  ...NO_USER_TOKENS,
  "an authorization request": "consent_required",
  "the dashboard with a session": "404 not_found",
  "the dashboard with a token": "404 not_found",
  "a change in the dashboard": "404 not_found",
};
const NO_CLIENT: Partial<Outcomes> = {
  "client credentials": "400 unauthorized_client",
  "a refresh": "400 unauthorized_client",
  "a pushed authorization request": "400 unauthorized_client",
  "an authorization request": "unauthorized_client",
  "introspection by the client of a user's token": "inactive",
  "introspection by the client of its refresh token": "inactive",
  "redeeming a code": "400 unauthorized_client",
};
const SUSPENDED_TOKENS: Partial<Outcomes> = {
  "the API with a user's token": "403 organization_suspended",
  "MCP with a user's token": "403 organization_suspended",
  "introspection by the client of a user's token": "inactive",
  "introspection by the client of its refresh token": "inactive",
  "introspection by the resource server": "active, suspended",
};

const PLAN_REQUIRED: Partial<Outcomes> = {
  "the API with a user's token": "403 plan_required",
  "MCP with a user's token": "403 plan_required",
  "introspection by the client of a user's token": "inactive",
  "introspection by the client of its refresh token": "inactive",
};

type Switch = {
  off(tenants: Tenants): Promise<unknown>;
  /** What differs from `WORKING` while it is off. */
  while: Partial<Outcomes>;
  on?(tenants: Tenants): Promise<unknown>;
  /** What differs from `WORKING` once it is on again. */
  after?: Partial<Outcomes>;
};

/** Removes a user from an organization, which gets another owner. */
async function leave(own: { id: string }, user: { id: string }): Promise<void> {
  await service.createUser([own.id], undefined, "owner");
  const manageableRoles: Role[] = ["owner", "admin", "member"];
  await members.remove({ organizationId: own.id, userId: user.id, manageableRoles, actor: OPERATOR });
}

const SWITCHES = {
  "a user is disabled": {
    off: ({ user }) => disabledAccounts.disable(user.id, "taken over", OPERATOR),
    while: { ...NO_USER_TOKENS, ...NO_SESSIONS, "a sign-in": "401 invalid_credentials" },
    on: ({ user }) => disabledAccounts.enable(user.id, OPERATOR),
    after: { ...NO_USER_TOKENS, ...NO_SESSIONS },
  },
  "a user is signed out": {
    off: ({ user }) => disabledAccounts.signOut(user.id, { apps: false }, OPERATOR),
    while: { ...NO_SESSIONS, "an authorization request": "login_required" },
  },
  "a user is signed out of apps, too": {
    off: ({ user }) => disabledAccounts.signOut(user.id, { apps: true }, OPERATOR),
    while: { ...NO_SESSIONS, ...NO_USER_TOKENS },
  },
  "a user is deleted": {
    // With the user's organization, which has no other member.
    off: ({ user }) => accountDeletions.deleteAccount(user.id, OPERATOR),
    while: {
      ...NO_SESSIONS,
      ...NO_USER_TOKENS,
      "a sign-in": "401 invalid_credentials",
      "a short link of the organization": "410",
    },
  },
  "an organization is suspended": {
    off: ({ own }) => suspensions.suspend(own.id, "phishing", OPERATOR),
    while: {
      ...SUSPENDED_TOKENS,
      "a refresh": "400 unauthorized_client",
      "redeeming a code": "400 unauthorized_client",
      "an authorization request": "consent_required",
      "a change in the dashboard": "403 organization_suspended",
      "a short link of the organization": "410",
    },
    on: ({ own }) => suspensions.resume(own.id, OPERATOR),
  },
  "the organization of an app is suspended": {
    off: ({ app }) => suspensions.suspend(app.id, "phishing", OPERATOR),
    while: {
      ...NO_CLIENT,
      ...SUSPENDED_TOKENS,
      "the API with a client's token": "403 organization_suspended",
      "a short link of the app's organization": "410",
    },
    on: ({ app }) => suspensions.resume(app.id, OPERATOR),
  },
  "an organization is deleted": {
    off: ({ own }) => organizations.remove(own.id, OPERATOR),
    while: { ...NOT_A_MEMBER, "a short link of the organization": "410" },
  },
  "a client is disabled": {
    off: ({ app }) => clients.disable(app.id, "leaked", OPERATOR),
    while: {
      ...NO_CLIENT,
      "the API with a user's token": "401 invalid_token",
      "the API with a client's token": "401 invalid_token",
      "MCP with a user's token": "401 invalid_token",
      "introspection by the resource server": "inactive",
    },
    on: ({ app }) => clients.enable(app.id, OPERATOR),
  },
  "a grant is revoked": {
    async off({ own }) {
      for (const { id } of await grants.listByOrganization(own.id)) await grants.revokeAny(id, OPERATOR);
    },
    while: { ...NO_USER_TOKENS, "an authorization request": "consent_required" },
  },
  "an organization is downgraded": {
    off: ({ own }) => organizations.setPlan(own.id, "free", OPERATOR),
    while: {
      ...PLAN_REQUIRED,
      "a refresh": "400 unauthorized_client",
      "redeeming a code": "400 unauthorized_client",
      "an authorization request": "consent_required",
    },
    on: ({ own }) => organizations.setPlan(own.id, "growth", OPERATOR),
  },
  "the organization of an app is downgraded": {
    off: ({ app }) => organizations.setPlan(app.id, "free", OPERATOR),
    while: { ...NO_CLIENT, ...PLAN_REQUIRED, "the API with a client's token": "403 plan_required" },
    on: ({ app }) => organizations.setPlan(app.id, "growth", OPERATOR),
  },
  "a user leaves the organization": { off: ({ own, user }) => leave(own, user), while: NOT_A_MEMBER },
  "a link is disabled": {
    off: ({ links }) => disabledLinks.disable(links.own.id, "phishing", OPERATOR),
    while: { "a short link of the organization": "410" },
    on: ({ links }) => disabledLinks.enable(links.own.id, OPERATOR),
  },
} satisfies Record<string, Switch>;

test("without a switch, everything works", async (t) => {
  t.deepEqual(await tryAll(await createTenants(service), context), WORKING);
});

for (const [name, { off, while: changed, on, after = {} }] of Object.entries<Switch>(SWITCHES))
  test(`when ${name}, exactly what depends on it stops with the next request`, async (t) => {
    const tenants = await createTenants(service);
    await off(tenants);
    await off(tenants); // switching off twice changes nothing
    t.deepEqual(await tryAll(tenants, context), { ...WORKING, ...changed });
    if (!on) return;
    await on(tenants);
    await on(tenants);
    // A code that was refused is used up.
    const { "redeeming a code": _, ...restored } = await tryAll(tenants, context);
    const { "redeeming a code": __, ...expected } = { ...WORKING, ...after };
    t.deepEqual(restored, expected);
  });

for (const name of [
  "the organization of an app is suspended",
  "a client is disabled",
  "the organization of an app is downgraded",
] as const)
  test(`while ${name}, the client can still revoke its tokens`, async (t) => {
    const tenants = await createTenants(service);
    const { app, clientToken, accessToken } = tenants;
    await SWITCHES[name].off(tenants);
    for (const token of [clientToken, accessToken])
      t.is((await postAsClient(service, "revoke", app, { token })).status, 200);
    await SWITCHES[name].on(tenants);
    for (const token of [clientToken, accessToken]) t.false(await isAcceptedByApi(service, token));
  });

for (const name of [
  "a user is disabled",
  "a user leaves the organization",
  "the organization of an app is downgraded",
  "an organization is downgraded",
  "an organization is suspended",
] as const)
  test(`an app gets no code if ${name} while the consent page is open`, async (t) => {
    const tenants = await createTenants(service);
    const browser = new TestBrowser(service.url);
    const page = await openConsent(browser, tenants.user, authorizeUrl(service, tenants.app));
    await SWITCHES[name].off(tenants);
    const fields = { decision: "allow", organization_id: tenants.own.id };
    const location = (await sendForm(browser, page, fields)).headers.get("location");
    const end = location ? await browser.open(location) : undefined;
    t.false(end?.url.includes("code=") ?? false);
  });

test("only a client that authenticates learns that its organization is on the Free plan", async (t) => {
  const { app } = await createApp(service);
  await organizations.setPlan(app.id, "free", OPERATOR);
  for (const endpoint of ["token", "par"]) {
    const fields = { grant_type: "client_credentials", response_type: "code" };
    t.is(await outcomeOf(postAsClient(service, endpoint, app, fields)), "400 unauthorized_client");
    const guess = postAsClient(service, endpoint, { ...app, clientSecret: "lgs_wrong" }, fields);
    t.is(await outcomeOf(guess), "401 invalid_client", endpoint);
  }
});

test("deleting a user keeps what others authorized for the same app and organization", async (t) => {
  const { app, own, user } = await createApp(service);
  const other = await service.createUser([own.id], undefined, "owner");
  const { accessToken } = await runCodeFlow(service, app, other);
  await accountDeletions.deleteAccount(user.id, OPERATOR);
  t.true(await isAcceptedByApi(service, accessToken));
});
