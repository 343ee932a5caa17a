import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { providerSettings, startMockProvider } from "../../harness/providers/identity-provider.ts";
import { startTestService } from "../../harness/service.ts";

const provider = await startMockProvider();
const service = await startTestService(providerSettings(provider.issuer));
test.after.always(async () => {
  await service.close();
  await provider.stop();
});

/** Asserts that no other site can frame the page, and that it loads nothing from other origins. */
function isKept(t: ExecutionContext, { url, headers, html }: Page) {
  t.is(headers.get("x-frame-options"), "DENY", url);
  t.is(headers.get("referrer-policy"), "no-referrer", url);
  t.is(headers.get("x-content-type-options"), "nosniff", url);
  // An authorization in a popup passes through there.
  const opener = new URL(url).pathname.startsWith("/auth/sso") ? "unsafe-none" : "same-origin";
  t.is(headers.get("cross-origin-opener-policy"), opener, url);
  t.is(headers.get("cache-control"), "no-store", url);
  const policy = (headers.get("content-security-policy") ?? "").split("; ");
  for (const rule of [
    "default-src 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ]) {
    t.true(policy.includes(rule), `${url}: ${rule}`);
  }
  t.notRegex(policy.join(), /unsafe|\*|data:|http:/, url);
  t.is(
    html.querySelectorAll("style, [style], script:not([src]), iframe, object, embed, base").length,
    0,
    url,
  );
  for (const { attributes } of html.querySelectorAll("*")) {
    for (const name of Object.keys(attributes)) t.notRegex(name, /^on/i, url);
    const { src, action } = attributes;
    t.regex(src ?? action ?? "/", /^\/(?!\/)/, `${url}: same origin`);
  }
}

/** Returns the pages of this service that a page links to. */
function linksOf({ url, html }: Page): string[] {
  const hrefs = html.querySelectorAll("a").map(({ attributes }) => new URL(attributes.href ?? "", url));
  return hrefs
    .filter(({ origin, pathname }) => origin === service.url && /^\/(dashboard|auth)/.test(pathname))
    .map(({ href }) => href.replace(/#.*$/, ""));
}

/** Returns every page that can be reached from the given ones by links. */
async function everyPageFrom(browser: TestBrowser, start: string[]): Promise<Page[]> {
  const pages = new Map<string, Page>();
  const open = start.map((path) => service.url + path);
  for (let url = open.pop(); url; url = open.pop()) {
    const key = url.replace(/\?.*$/, "");
    if (pages.has(key) || url.startsWith(`${service.url}/auth/sso`)) continue;
    const page = await browser.open(url);
    pages.set(key, page);
    open.push(...linksOf(page));
  }
  return [...pages.values()].filter(({ headers }) => headers.get("content-type")?.startsWith("text/html"));
}

test("no page of the dashboard can be framed or loads anything from another origin", async (t) => {
  const { organization } = await service.storage.organizations.create(
    "Everything & <b>more",
    "growth",
    OPERATOR,
  );
  const user = await service.createUser([]);
  await service.storage.organizations.addMember(organization.id, user.id, "owner", OPERATOR);
  await tokensFor(service, await service.createOrganization(), user);
  const { browser } = await browserOf(service, user);
  const pages = await everyPageFrom(browser, ["/dashboard", "/dashboard/account"]);
  t.true(pages.length >= 10, `${pages.map(({ url }) => url).join("\n")}`);
  for (const page of pages) {
    t.is(page.status, 200, page.url);
    isKept(t, page);
  }
});

test("no page before the sign-in can be framed or loads anything from another origin", async (t) => {
  const browser = new TestBrowser(service.url);
  const pages = await everyPageFrom(browser, ["/auth/login", "/auth/register", "/auth/login?again=1"]);
  t.is(pages.length, 2);
  for (const page of pages) isKept(t, page);
});

const REFUSALS: Record<string, [status: number, path: string, fields?: Record<string, string>]> = {
  "a wrong password": [400, "/auth/login", { username: "no-such-user", password: "wrong" }],
  "an invalid username": [422, "/auth/register", { username: "x", password: "correct horse battery" }],
  "an SSO callback without a pending sign-in": [400, "/auth/sso/callback?code=a&state=b"],
  "an unknown URL": [404, "/auth/nothing"],
  "an unknown page of the dashboard": [404, "/dashboard/nothing"],
  "an unknown organization": [404, "/dashboard/organizations/org_none"],
  "a form without a CSRF token": [403, "/dashboard/organizations", { name: "Mine" }],
  "a form that is too large": [413, "/auth/login", { username: "x".repeat(70_000) }],
};

for (const [what, [status, path, fields]] of Object.entries(REFUSALS)) {
  test(`the error page for ${what} is protected like the others`, async (t) => {
    const { browser } = await browserOf(service, await service.createUser([]));
    const page = await browser.open(service.url + path, {
      ...(fields && { method: "POST", body: new URLSearchParams(fields) }),
    });
    t.is(page.status, status, page.text);
    t.truthy(page.html.querySelector("h1"), "it is a page of this service");
    isKept(t, page);
  });
}

test("JSON responses can't be framed or cached either", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  for (const path of [
    "/dashboard/me",
    "/dashboard/account",
    "/dashboard/account/export",
    "/dashboard/account/sessions",
  ]) {
    const { headers, status } = await browser.open(service.url + path, {
      headers: { accept: "application/json" },
    });
    t.is(status, 200, path);
    t.is(headers.get("x-frame-options"), "DENY", path);
    t.is(headers.get("cache-control"), "no-store", path);
    t.is(headers.get("access-control-allow-origin"), null, path);
  }
});
