import test from "ava";
import { parse } from "node-html-parser";
import { browserOf } from "../harness/clients/dashboard.ts";
import { startTestService } from "../harness/service.ts";

const CONTACT = "mailto:security@example.com";
const service = await startTestService({ SECURITY_CONTACT: CONTACT });
const invite = await startTestService({ REGISTRATION: "invite" });
const resources = await startTestService({
  INTROSPECTION_URL: `${service.url}/oauth/introspect`,
  INTROSPECTION_CLIENT_SECRET: "a secret of the resource server",
});

const HTML: Record<string, string> = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

async function open(path = "/", { method = "GET", base = service.url, headers = HTML } = {}) {
  const answer = await fetch(base + path, { method, headers, redirect: "manual" });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, html: parse(text) };
}

const hrefsIn = ({ html }: { html: ReturnType<typeof parse> }) =>
  html.querySelectorAll("a").map(({ attributes }) => attributes.href);

test("a signed-out visitor sees what linkgate is and where to start", async (t) => {
  const page = await open();
  t.is(page.status, 200);
  t.is(page.headers.get("content-type"), "text/html; charset=utf-8");
  t.is(page.headers.get("cache-control"), "no-store");
  t.regex(page.headers.get("vary") ?? "", /Accept/);
  t.is(page.html.querySelectorAll("h1").length, 1);
  t.is((await open("/", { headers: { ...HTML, cookie: "session=made-up" } })).status, 200);
  const hrefs = hrefsIn(page);
  t.is(hrefs[0], "/auth/register");
  for (const href of ["/auth/login", "/auth/register", "/docs", "/.well-known/oauth-authorization-server"])
    t.true(hrefs.includes(href), href);
  for (const href of hrefs) t.is((await fetch(new URL(href ?? "", service.url))).status, 200, href);
  const codes = page.html.querySelectorAll("code").map(({ text }) => text);
  for (const address of [service.urls.api, service.urls.mcp]) t.true(codes.includes(address), address);
});

test("registration is offered only where a visitor may register", async (t) => {
  const hrefs = hrefsIn(await open("/", { base: invite.url }));
  t.is(hrefs[0], "/auth/login");
  t.false(hrefs.includes("/auth/register"));
});

test("a signed-in user is redirected to the dashboard", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  browser.follows = false;
  const answer = await browser.open(`${service.url}/`);
  t.is(answer.status, 303);
  t.is(answer.headers.get("location"), "/dashboard");
});

test("a program gets the URLs as JSON, signed in or not", async (t) => {
  const { base, api, mcp } = service.urls;
  const expected = {
    name: "linkgate",
    documentation_url: `${base}/docs`,
    openapi_url: `${api}/openapi.json`,
    api_url: api,
    mcp_url: mcp,
    authorization_server: base,
    authorization_server_metadata_url: `${base}/.well-known/oauth-authorization-server`,
    protected_resource_metadata_url: `${base}/.well-known/oauth-protected-resource`,
  };
  const { browser } = await browserOf(service, await service.createUser([]));
  const cookie = await browser.jar.getCookieString(service.url);
  for (const headers of [
    { accept: "application/json" },
    { accept: "*/*" },
    { accept: "application/json", cookie },
  ]) {
    const answer = await open("/", { headers: headers as Record<string, string> });
    t.is(answer.status, 200);
    t.deepEqual(JSON.parse(answer.text), expected);
  }
  for (const [name, url] of Object.entries(expected))
    if (name.endsWith("_url") && name !== "api_url" && name !== "mcp_url")
      t.is((await fetch(url)).status, 200, name);
});

test("a server without sign-in describes what it serves and offers no sign-in", async (t) => {
  const { url: base } = resources;
  const page = await open("/", { base });
  t.is(page.status, 200);
  const hrefs = hrefsIn(page);
  t.notRegex(hrefs.join("\n"), /^\/(auth|dashboard)/m);
  for (const href of ["/docs", "/.well-known/oauth-protected-resource"]) t.true(hrefs.includes(href), href);
  for (const href of hrefs) t.is((await fetch(new URL(href ?? "", base))).status, 200, href);
  const json = JSON.parse((await open("/", { base, headers: { accept: "application/json" } })).text);
  t.is(json.mcp_url, resources.urls.mcp);
});

const ORGANIZATION = "/dashboard/organizations/org_1";

const GUESSES: [guess: string, page: string][] = [
  ["/login?return_to=%2Fdashboard", "/auth/login?return_to=%2Fdashboard"],
  ["/logout", "/dashboard/account"],
  ["/auth/logout", "/dashboard/account"],
  ["/dashboard/organizations", "/dashboard"],
  ["/dashboard/account/sessions/ses_1/delete", "/dashboard/account"],
  [`${ORGANIZATION}/members/usr_1/reset-link`, `${ORGANIZATION}/members`],
  [`${ORGANIZATION}/invitations/inv_1/delete`, ORGANIZATION],
  [`${ORGANIZATION}/client/redirect-uris/delete`, `${ORGANIZATION}/client/redirect-uris`],
  [`${ORGANIZATION}/client/secrets/sec_1/delete`, `${ORGANIZATION}/client`],
  [`${ORGANIZATION}/links/selection`, `${ORGANIZATION}/links`],
  [`${ORGANIZATION}/webhooks/whk_1/test`, `${ORGANIZATION}/webhooks/whk_1`],
  [`${ORGANIZATION}/webhooks/whk_1/deliveries/dlv_1/resend`, `${ORGANIZATION}/webhooks/whk_1`],
];

test("a browser that reads where a form was sent to, or guesses an address, is redirected to the page", async (t) => {
  for (const [guess, page] of GUESSES)
    for (const method of ["GET", "HEAD"]) {
      const answer = await open(guess, { method });
      t.deepEqual([answer.status, answer.headers.get("location")], [302, page], `${method} ${guess}`);
      t.is(answer.headers.get("cache-control"), "no-store", guess);
    }
  for (const path of ["/login", "/auth/logout", "/dashboard/organizations"])
    t.not((await open(path, { method: "POST" })).status, 302, path);
  for (const path of ["/login", "/register", "/logout"])
    t.is((await open(path, { base: resources.url })).status, 404, "a server without sign-in has none");
  for (const [slashed, path] of [
    ["/dashboard/", "/dashboard"],
    ["/docs/?x=1", "/docs?x=1"],
  ] as const) {
    const { status, headers } = await open(slashed);
    t.deepEqual([status, headers.get("location")], [308, path]);
    t.not((await open(slashed, { method: "POST" })).status, 308);
  }
});

test("a program gets JSON, not a redirect, where the address is part of the API", async (t) => {
  for (const path of ["/auth/logout", "/dashboard/organizations", `${ORGANIZATION}/members/usr_1`]) {
    const answer = await open(path, { headers: { accept: "application/json" } });
    t.true(answer.status === 401 || answer.status === 404, path);
    t.regex(answer.headers.get("content-type") ?? "", /json/, path);
  }
});

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

test("/robots.txt keeps crawlers away from everything that needs a sign-in or a token", async (t) => {
  const answer = await fetch(`${service.url}/robots.txt`);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  const text = await answer.text();
  t.true(text.startsWith("User-agent: *\n"));
  for (const path of ["/auth/", "/dashboard", "/interaction/", "/oauth/", "/v1/", "/mcp"])
    t.true(text.includes(`\nDisallow: ${path}\n`), path);
  t.notRegex(text, /^Disallow: \/$/m, "short links may be crawled");
});

test("/.well-known/security.txt names the contact and expires within a year (RFC 9116)", async (t) => {
  const url = `${service.url}/.well-known/security.txt`;
  const answer = await fetch(url);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  const lines = (await answer.text()).trimEnd().split("\n");
  const fields = Object.fromEntries(lines.map((line) => line.split(/: (.*)/, 2) as [string, string]));
  t.like(fields, { Contact: CONTACT, Canonical: url });
  const left = Date.parse(fields.Expires ?? "") - Date.now();
  t.true(left > 0 && left < YEAR_MS, fields.Expires);
  t.is((await fetch(`${invite.url}/.well-known/security.txt`)).status, 404, "without SECURITY_CONTACT");
});
