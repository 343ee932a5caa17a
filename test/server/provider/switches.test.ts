import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isAcceptedByApi, postAsClient } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createTenants,
  type ResourceServer,
  type SurfaceName,
  type Tenants,
  tryAll,
} from "../../harness/surfaces.ts";

export const databases = "all";

const SECRET = "a-secret-of-the-resource-server-0123456789";
const service = await startTestService({ RESOURCE_SERVER_SECRET: SECRET });
test.after.always(() => service.close());
const resourceServer: ResourceServer = {
  id: "",
  name: "",
  clientId: "resource-server",
  clientSecret: SECRET,
};
const { disabledAccounts, accountDeletions, clients, grants, disabledLinks, organizations, suspensions } =
  service.storage;

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

type Switch = {
  off(tenants: Tenants): Promise<unknown>;
  /** What differs from `WORKING` while it is off. */
  while: Partial<Outcomes>;
  on?(tenants: Tenants): Promise<unknown>;
  /** What differs from `WORKING` once it is on again. */
  after?: Partial<Outcomes>;
};

const SWITCHES: Record<string, Switch> = {
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
    while: {
      ...NO_USER_TOKENS,
      "an authorization request": "consent_required",
      "the dashboard with a session": "404 not_found",
      "the dashboard with a token": "404 not_found",
      "a change in the dashboard": "404 not_found",
      "a short link of the organization": "410",
    },
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
  "a link is disabled": {
    off: ({ links }) => disabledLinks.disable(links.own.id, "phishing", OPERATOR),
    while: { "a short link of the organization": "410" },
    on: ({ links }) => disabledLinks.enable(links.own.id, OPERATOR),
  },
};

test("without a switch, everything works", async (t) => {
  t.deepEqual(await tryAll(await createTenants(service), { service, resourceServer }), WORKING);
});

for (const [name, { off, while: changed, on, after = {} }] of Object.entries(SWITCHES)) {
  test(`when ${name}, exactly what depends on it stops with the next request`, async (t) => {
    const tenants = await createTenants(service);
    await off(tenants);
    await off(tenants); // switching off twice changes nothing
    const outcomes = await tryAll(tenants, { service, resourceServer });
    t.deepEqual(outcomes, { ...WORKING, ...changed });
    if (!on) return;
    await on(tenants);
    await on(tenants);
    // A code that was refused is used up.
    const { "redeeming a code": _, ...restored } = await tryAll(tenants, { service, resourceServer });
    const { "redeeming a code": __, ...expected } = { ...WORKING, ...after };
    t.deepEqual(restored, expected);
  });
}

for (const [name, off] of Object.entries({
  "suspended organization": ({ app }: Tenants) => suspensions.suspend(app.id, null, OPERATOR),
  "disabled client": ({ app }: Tenants) => clients.disable(app.id, null, OPERATOR),
})) {
  test(`a ${name} can still revoke its tokens`, async (t) => {
    const tenants = await createTenants(service);
    const { app, clientToken, accessToken } = tenants;
    await off(tenants);
    for (const token of [clientToken, accessToken]) {
      t.is((await postAsClient(service, "revoke", app, { token })).status, 200);
    }
    await suspensions.resume(app.id, OPERATOR);
    await clients.enable(app.id, OPERATOR);
    t.false(await isAcceptedByApi(service, clientToken));
    t.false(await isAcceptedByApi(service, accessToken));
  });
}
