import test, { type ExecutionContext } from "ava";
import { openConsent, sendForm } from "../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { browserOf } from "../harness/clients/dashboard.ts";
import { type Filled, type Page, TestBrowser } from "../harness/clients/test-browser.ts";
import { createTestDatabase, inspect } from "../harness/database/test-database.ts";
import { startWithProvider } from "../harness/providers/identity-provider.ts";

const database = await createTestDatabase();
const { service } = await startWithProvider({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64url"),
});
const { app, own, user } = await createApp(service);

const newBrowser = () => new TestBrowser(service.url);
const openSignIn = (browser: TestBrowser) => browser.open(authorizeUrl(service, app));
const signedIn = async () => (await browserOf(service, user)).browser;

async function resetLink(): Promise<string> {
  return `/auth/reset-password/${await service.storage.accounts.createResetToken(user.id, 60_000)}`;
}

const visit = (path: string, browser = newBrowser()) => browser.open(new URL(path, service.url).href);
const post = (path: string, fields: Record<string, string>, browser = newBrowser()) =>
  browser.open(service.url + path, { method: "POST", body: new URLSearchParams(fields) });

const visitSignedIn = async (path: string) => visit(path, await signedIn());

async function signInWith(fields: Filled) {
  const browser = newBrowser();
  return browser.press(await openSignIn(browser), "Sign in", { username: user.username, ...fields });
}

async function answerConsent(button: string, fields: Filled = {}) {
  const browser = newBrowser();
  return browser.press(await openConsent(browser, user, authorizeUrl(service, app)), button, fields);
}

const large = { password: "x".repeat(70_000), username: "x" };

/** Every kind of page without a session, and those that a session doesn't link to, with the status of each. */
const PAGES: Record<string, [status: number, show: () => Promise<Page>]> = {
  "sign-in of an authorization": [200, () => openSignIn(newBrowser())],
  "wrong password of an authorization": [400, () => signInWith({ password: "not the password" })],
  consent: [200, () => openConsent(newBrowser(), user, authorizeUrl(service, app))],
  "account choice": [200, () => visitSignedIn(authorizeUrl(service, app, { prompt: "select_account" }))],
  "consent without an organization": [422, () => answerConsent("Allow", { organization_id: "org_none" })],
  "authorization error": [
    400,
    () => visit(authorizeUrl(service, app, { redirect_uri: "https://evil.test/" })),
  ],
  "a sign-in of another browser": [400, async () => visit((await openSignIn(newBrowser())).url)],
  "an expired authorization": [400, () => visit("/interaction/unknown")],
  "a form of an authorization that is too large": [413, () => signInWith(large)],
  reset: [200, async () => visit(await resetLink())],
  "reset with a weak password": [422, async () => post(await resetLink(), { password: "weak" })],
  "invalid reset link": [404, () => visit("/auth/reset-password/nothing")],
  "reset form that is too large": [413, async () => post(await resetLink(), large)],
  "sign-in": [200, () => visit("/auth/login?again=1")],
  registration: [200, () => visit("/auth/register")],
  "a wrong password": [400, () => post("/auth/login", { username: "unknown", password: "wrong" })],
  "an SSO callback without a pending sign-in": [400, () => visit("/auth/sso/callback?code=a&state=b")],
  landing: [200, () => visit("/")],
  "a page of the documentation": [200, () => visit("/docs/api/create-link")],
  "unknown short link": [404, () => visit("/no-such-link")],
  dashboard: [200, () => visitSignedIn("/dashboard")],
  account: [200, () => visitSignedIn("/dashboard/account")],
  "an organization": [200, () => visitSignedIn(`/dashboard/organizations/${own.id}/settings`)],
  "unknown page of the dashboard": [404, () => visitSignedIn("/dashboard/nothing")],
  "form without a CSRF token": [
    403,
    async () => post("/dashboard/organizations", { name: "Mine" }, await signedIn()),
  ],
};

function isProtected(t: ExecutionContext, { url, status, headers, html }: Page) {
  const { pathname } = new URL(url);
  const isPersonal = /^\/(dashboard|auth|interaction)/.test(pathname);
  t.is(headers.get("content-type"), "text/html; charset=utf-8", url);
  t.is(headers.get("x-frame-options"), "DENY", url);
  t.is(headers.get("referrer-policy"), "no-referrer", url);
  t.is(headers.get("x-content-type-options"), "nosniff", url);
  t.is(headers.get("strict-transport-security"), null, "not over http");
  const isTooLarge = status === 413 && pathname.startsWith("/interaction/");
  if (isPersonal && !isTooLarge) t.regex(headers.get("cache-control") ?? "", /no-store/, url);
  // An authorization in a popup passes through there.
  const isStep = /^\/(interaction|oauth\/authorize|auth\/sso)(\/|$)/.test(pathname);
  t.is(headers.get("cross-origin-opener-policy"), isStep ? "unsafe-none" : "same-origin", url);

  const policy = (headers.get("content-security-policy") ?? "").split("; ");
  for (const name of ["default-src", "frame-ancestors", "base-uri", "object-src"])
    t.true(policy.includes(`${name} 'none'`), `${url}: ${name}`);
  for (const name of ["script-src", "style-src", "img-src", "font-src"])
    t.true(policy.includes(`${name} 'self'`), `${url}: ${name}`);
  // The forms of an authorization may lead anywhere with the app, and others only to this origin.
  t.is(policy.includes("form-action 'self'"), !pathname.startsWith("/interaction/"), url);
  t.notRegex(policy.join(), /unsafe|\*|data:|http:/, url);

  const inline = "script:not([src]), style, [style], iframe, object, embed, base";
  t.is(html.querySelectorAll(inline).length, 0, url);
  t.truthy(html.querySelector("h1"), "it is a page of this service");
  if (isPersonal) t.truthy(html.querySelector("main a, main button"), `${url} has a way on`);
  for (const { attributes } of html.querySelectorAll("*"))
    for (const name of Object.keys(attributes)) t.notRegex(name, /^on/i, url);
  for (const { attributes } of html.querySelectorAll("[src], link[href], [action]"))
    t.regex(attributes.src ?? attributes.href ?? attributes.action ?? "", /^\/(?!\/)/, `${url}: same origin`);
}

for (const [name, [status, show]] of Object.entries(PAGES))
  test.serial(`“${name}” can't be framed, sends no referrer and loads nothing from elsewhere`, async (t) => {
    const shown = await show();
    t.is(shown.status, status);
    isProtected(t, shown);
  });

test.serial("JSON can't be framed, cached or read by other sites, and neither can its errors", async (t) => {
  const browser = await signedIn();
  for (const path of ["/me", "/account", "/account/export", "/account/sessions", "/nothing"]) {
    const headers = { accept: "application/json" };
    const answer = await browser.open(`${service.url}/dashboard${path}`, { headers });
    t.is(answer.status, path === "/nothing" ? 404 : 200, path);
    t.is(answer.headers.get("x-frame-options"), "DENY", path);
    t.is(answer.headers.get("x-content-type-options"), "nosniff", path);
    t.is(answer.headers.get("cache-control"), "no-store", path);
    t.is(answer.headers.get("access-control-allow-origin"), null, path);
  }
});

test.serial("signing in and approving redirect with 303", async (t) => {
  const browser = newBrowser();
  const { username, password } = user;
  const signIn = await openSignIn(browser);
  t.is((await sendForm(browser, signIn, { username, password })).status, 303);
  const consent = await openConsent(browser, user, authorizeUrl(service, app));
  t.is((await sendForm(browser, consent, { decision: "allow", organization_id: own.id })).status, 303);
});

test.serial("an unexpected error has the request ID as JSON, and never a stack or a statement", async (t) => {
  const link = await resetLink();
  const { knex } = inspect(database.url);
  await knex.schema.renameTable("one_time_links", "gone");
  const shown = await visit(link);
  const json = await fetch(service.url + link);
  await knex.schema.renameTable("gone", "one_time_links");
  t.is(shown.status, 500);
  isProtected(t, shown);
  t.notRegex(shown.text, /select|one_time_links|\.ts|Error/);
  t.is(json.status, 500);
  const body = (await json.json()) as { request_id: string };
  t.is(body.request_id, String(json.headers.get("x-request-id")));
  t.notRegex(JSON.stringify(body), /select|one_time_links|\.ts/);
});
