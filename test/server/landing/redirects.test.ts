import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const resources = await startTestService({
  INTROSPECTION_URL: `${service.url}/oauth/introspect`,
  INTROSPECTION_CLIENT_SECRET: "a secret of the resource server",
});
test.after.always(() => Promise.all([service.close(), resources.close()]));

const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

function open(
  path: string,
  { method = "GET", base = service.url, headers = HTML as Record<string, string> } = {},
) {
  return fetch(base + path, { method, headers, redirect: "manual" });
}

const ORGANIZATION = "/dashboard/organizations/org_1";

for (const [guess, page] of [
  ["/login", "/auth/login"],
  ["/login?return_to=%2Fdashboard", "/auth/login?return_to=%2Fdashboard"],
  ["/signin", "/auth/login"],
  ["/register", "/auth/register"],
  ["/signup", "/auth/register"],
  ["/logout", "/dashboard/account"],
  ["/auth", "/auth/login"],
  ["/auth/", "/auth/login"],
  ["/auth/logout", "/dashboard/account"],
  ["/dashboard/organizations", "/dashboard"],
  ["/dashboard/account/password", "/dashboard/account"],
  ["/dashboard/account/delete", "/dashboard/account"],
  ["/dashboard/account/sessions/delete", "/dashboard/account"],
  ["/dashboard/account/sessions/ses_1/delete", "/dashboard/account"],
  ["/dashboard/account/identities", "/dashboard/account"],
  ["/dashboard/account/identities/delete", "/dashboard/account"],
  [`${ORGANIZATION}/members/usr_1`, `${ORGANIZATION}/members`],
  [`${ORGANIZATION}/members/usr_1/reset-link`, `${ORGANIZATION}/members`],
  [`${ORGANIZATION}/invitations/inv_1/delete`, ORGANIZATION],
  [`${ORGANIZATION}/client/redirect-uris`, `${ORGANIZATION}/client`],
  [`${ORGANIZATION}/client/secrets/sec_1/delete`, `${ORGANIZATION}/client`],
  [`${ORGANIZATION}/webhooks/whk_1/test`, `${ORGANIZATION}/webhooks/whk_1`],
  [`${ORGANIZATION}/webhooks/whk_1/deliveries/dlv_1/resend`, `${ORGANIZATION}/webhooks/whk_1`],
] as const) {
  test(`${guess} redirects a browser to ${page}`, async (t) => {
    for (const method of ["GET", "HEAD"]) {
      const answer = await open(guess, { method });
      t.is(answer.status, 302, method);
      t.is(answer.headers.get("location"), page, method);
      t.is(answer.headers.get("cache-control"), "no-store", method);
    }
  });
}

test("only reads are redirected", async (t) => {
  for (const path of ["/login", "/auth/logout", "/dashboard/organizations"]) {
    const answer = await open(path, { method: "POST" });
    t.not(answer.status, 302, path);
  }
});

test("a program gets JSON, not a redirect, where the address is part of the API", async (t) => {
  for (const path of ["/auth/logout", "/dashboard/organizations", `${ORGANIZATION}/members/usr_1`]) {
    const answer = await open(path, { headers: { accept: "application/json" } });
    t.true(answer.status === 401 || answer.status === 404, path);
    t.regex(answer.headers.get("content-type") ?? "", /json/, path);
  }
});

test("no GET request signs a user out", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  for (const path of ["/logout", "/auth/logout"]) {
    const page = await browser.open(service.url + path);
    t.is(page.status, 200, path);
    t.is(page.url, `${service.url}/dashboard/account`, path);
    const signOut = page.html.querySelector('form[action="/auth/logout"] button');
    t.is(signOut?.text, "Sign out", path);
  }
});

test("the page of a form opens where the form was sent to", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  for (const action of ["/dashboard/account/password", "/dashboard/organizations", "/register"]) {
    t.is((await browser.open(service.url + action)).status, 200, action);
  }
});

test("a signed-in user who opens the registration page is redirected", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  browser.follows = false;
  for (const [query, target] of [
    ["", "/dashboard"],
    ["?return_to=%2Fdashboard%2Faccount", "/dashboard/account"],
    ["?return_to=https%3A%2F%2Fevil.example", "/dashboard"],
  ] as const) {
    const answer = await browser.open(`${service.url}/auth/register${query}`);
    t.is(answer.status, 303, query);
    t.is(answer.headers.get("location"), target, query);
  }
});

test("a server without sign-in has no redirects to it", async (t) => {
  for (const path of ["/login", "/register", "/logout"]) {
    t.is((await open(path, { base: resources.url })).status, 404, path);
  }
});

test("no short link can take the place of a redirect", async (t) => {
  const organization = await service.createOrganization();
  const headers = {
    authorization: `Bearer ${await service.token(organization)}`,
    "content-type": "application/json",
  };
  for (const slug of ["login", "Logout", "register", "signin", "signup", "auth", "dashboard", "docs"]) {
    const body = JSON.stringify({ url: "https://example.com", slug });
    const answer = await fetch(`${service.urls.api}/links`, { method: "POST", headers, body });
    t.is(answer.status, 422, slug);
  }
});
