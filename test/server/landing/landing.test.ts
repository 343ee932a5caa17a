import test from "ava";
import { parse } from "node-html-parser";
import { readSettings } from "../../../server/settings/config.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { freePort } from "../../harness/port.ts";
import { startTestService, type TestService } from "../../harness/service.ts";

const shortPort = await freePort();
const [service, invite, apart] = await Promise.all([
  startTestService(),
  startTestService({ REGISTRATION: "invite" }),
  startTestService({
    PORT: String(shortPort),
    BASE_URL: `http://localhost:${shortPort}`,
    SHORT_URL: `http://127.0.0.1:${shortPort}`,
  }),
]);
const resources = await startTestService({
  INTROSPECTION_URL: `${service.url}/oauth/introspect`,
  INTROSPECTION_CLIENT_SECRET: "a secret of the resource server",
});

const CONTACT = "mailto:security@example.com";
const contact = await startTestService({ SECURITY_CONTACT: CONTACT });

test.after.always(() => Promise.all([service, invite, apart, resources].map((one) => one.close())));
test.after.always(() => contact.close());

const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

async function open({ url }: TestService, headers: Record<string, string> = HTML, method = "GET") {
  const answer = await fetch(`${url}/`, { headers, method, redirect: "manual" });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, html: parse(text) };
}

const hrefsIn = ({ html }: { html: ReturnType<typeof parse> }) =>
  html.querySelectorAll("a").map(({ attributes }) => attributes.href);

test("a signed-out visitor sees what linkgate is and where to start", async (t) => {
  const page = await open(service);
  t.is(page.status, 200);
  t.is(page.headers.get("content-type"), "text/html; charset=utf-8");
  t.is(page.headers.get("cache-control"), "no-store");
  t.regex(page.headers.get("vary") ?? "", /Accept/);
  t.is(page.html.querySelectorAll("h1").length, 1);
  const hrefs = hrefsIn(page);
  for (const href of ["/auth/login", "/auth/register", "/docs", "/.well-known/oauth-authorization-server"])
    t.true(hrefs.includes(href), href);
  for (const href of hrefs) t.is((await fetch(new URL(href ?? "", service.url))).status, 200, href);
  for (const address of [service.urls.api, service.urls.mcp])
    t.true(
      page.html.querySelectorAll("code").some(({ text }) => text === address),
      address,
    );
});

test("registration is offered only where a visitor may register", async (t) => {
  const hrefs = hrefsIn(await open(invite));
  t.true(hrefs.includes("/auth/login"));
  t.false(hrefs.includes("/auth/register"));
});

test("a signed-in user is redirected to the dashboard", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  browser.follows = false;
  const answer = await browser.open(`${service.url}/`);
  t.is(answer.status, 303);
  t.is(answer.headers.get("location"), "/dashboard");
  browser.follows = true;
  t.is((await browser.open(`${service.url}/`)).status, 200);
});

test("an invalid session gets the landing page", async (t) => {
  const browser = new TestBrowser(service.url);
  await browser.jar.setCookie("session=made-up", service.url);
  const page = await browser.open(`${service.url}/`);
  t.is(page.url, `${service.url}/`);
  t.true(page.html.querySelectorAll("a").some(({ text }) => text === "Sign in"));
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
    const answer = await open(service, headers as Record<string, string>);
    t.is(answer.status, 200);
    t.deepEqual(JSON.parse(answer.text), expected);
  }
  for (const [name, url] of Object.entries(expected))
    if (name.endsWith("_url") && name !== "api_url" && name !== "mcp_url")
      t.is((await fetch(url)).status, 200, name);
});

test("HEAD responds like GET without a body", async (t) => {
  const head = await open(service, HTML, "HEAD");
  t.is(head.status, 200);
  t.is(head.text, "");
  t.is(head.headers.get("content-type"), "text/html; charset=utf-8");
});

test("OPTIONS / lists the allowed methods", async (t) => {
  const answer = await open(service, { accept: "application/json" }, "OPTIONS");
  t.deepEqual([answer.status, answer.headers.get("allow")], [204, "GET, HEAD, OPTIONS"]);
});

for (const method of ["POST", "PUT", "DELETE"]) {
  test(`${method} / is 405 with the allowed methods`, async (t) => {
    const answer = await open(service, { accept: "application/json" }, method);
    t.is(answer.status, 405);
    t.is(answer.headers.get("allow"), "GET, HEAD, OPTIONS");
    t.like(JSON.parse(answer.text), { code: "method_not_allowed", status: 405 });
  });
}

test("the landing page loads nothing from other origins", async (t) => {
  const { headers, html } = await open(service);
  t.is(headers.get("x-frame-options"), "DENY");
  t.is(headers.get("x-content-type-options"), "nosniff");
  t.is(headers.get("cross-origin-opener-policy"), "same-origin");
  t.regex(headers.get("content-security-policy") ?? "", /default-src 'none'.*object-src 'none'/);
  t.is(html.querySelectorAll("style, [style], script:not([src]), iframe, object, embed, base").length, 0);
  for (const { attributes } of html.querySelectorAll("[src], link[href]"))
    t.regex(attributes.src ?? attributes.href ?? "", /^\/assets\//);
});

test("a server without sign-in describes what it serves and offers no sign-in", async (t) => {
  const page = await open(resources);
  t.is(page.status, 200);
  const hrefs = hrefsIn(page);
  t.false(
    hrefs.some((href) => href?.startsWith("/auth") || href?.startsWith("/dashboard")),
    hrefs.join(),
  );
  for (const href of ["/docs", "/.well-known/oauth-protected-resource"]) t.true(hrefs.includes(href), href);
  for (const href of hrefs) t.is((await fetch(new URL(href ?? "", resources.url))).status, 200, href);
  const json = JSON.parse((await open(resources, { accept: "application/json" })).text);
  t.is(json.mcp_url, resources.urls.mcp);
});

test("the host of the short links has no landing page", async (t) => {
  const at = (host: string) =>
    sendRaw(apart.url, "/", { headers: ["host", `${host}:${shortPort}`, "accept", "text/html"] });
  t.is((await at("localhost")).status, 200);
  const short = await at("127.0.0.1");
  t.is(short.status, 404);
  t.notRegex(short.text, /Sign in|auth\/login/);
});

for (const [slashed, path] of [
  ["/dashboard/", "/dashboard"],
  ["/docs/", "/docs"],
  ["/docs/?x=1", "/docs?x=1"],
] as const) {
  test(`${slashed} redirects to ${path}`, async (t) => {
    for (const method of ["GET", "HEAD"]) {
      const answer = await fetch(service.url + slashed, { method, redirect: "manual" });
      t.is(answer.status, 308);
      t.is(answer.headers.get("location"), path);
    }
    t.is(
      (await fetch(service.url + slashed, { method: "POST", redirect: "manual" })).headers.get("location"),
      null,
    );
  });
}

test("the metrics count / as a separate route", async (t) => {
  await open(service);
  const { text } = await sendRaw(service.url, "/metrics");
  t.regex(text, /^linkgate_http_requests_total\{method="GET",route="\/",status="200"\} \d+$/m);
});

function openPath(
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
  ["/auth/passkey", "/auth/login"],
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
  [`${ORGANIZATION}/client/redirect-uris/delete`, `${ORGANIZATION}/client/redirect-uris`],
  [`${ORGANIZATION}/client/secrets/sec_1/delete`, `${ORGANIZATION}/client`],
  [`${ORGANIZATION}/links/selection`, `${ORGANIZATION}/links`],
  [`${ORGANIZATION}/webhooks/whk_1/test`, `${ORGANIZATION}/webhooks/whk_1`],
  [`${ORGANIZATION}/webhooks/whk_1/deliveries/dlv_1/resend`, `${ORGANIZATION}/webhooks/whk_1`],
] as const) {
  test(`${guess} redirects a browser to ${page}`, async (t) => {
    for (const method of ["GET", "HEAD"]) {
      const answer = await openPath(guess, { method });
      t.is(answer.status, 302, method);
      t.is(answer.headers.get("location"), page, method);
      t.is(answer.headers.get("cache-control"), "no-store", method);
    }
  });
}

test("only reads are redirected", async (t) => {
  for (const path of ["/login", "/auth/logout", "/dashboard/organizations"]) {
    const answer = await openPath(path, { method: "POST" });
    t.not(answer.status, 302, path);
  }
});

test("a program gets JSON, not a redirect, where the address is part of the API", async (t) => {
  for (const path of ["/auth/logout", "/dashboard/organizations", `${ORGANIZATION}/members/usr_1`]) {
    const answer = await openPath(path, { headers: { accept: "application/json" } });
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
    t.is((await openPath(path, { base: resources.url })).status, 404, path);
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

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

test("/favicon.ico is the icon of the pages", async (t) => {
  const answer = await fetch(`${service.url}/favicon.ico`);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "image/svg+xml");
  t.is(await answer.text(), await (await fetch(`${service.url}/assets/icon.svg`)).text());
});

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
  const url = `${contact.url}/.well-known/security.txt`;
  const answer = await fetch(url);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  const fields = Object.fromEntries(
    (await answer.text())
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/: (.*)/, 2) as [string, string]),
  );
  t.like(fields, { Contact: CONTACT, Canonical: url });
  const left = Date.parse(fields.Expires ?? "") - Date.now();
  t.true(left > 0 && left < YEAR_MS, fields.Expires);
});

test("without SECURITY_CONTACT there is no security.txt", async (t) => {
  t.is((await fetch(`${service.url}/.well-known/security.txt`)).status, 404);
});

test("SECURITY_CONTACT is a mailto: or an https: URI", (t) => {
  for (const good of [CONTACT, "https://example.com/security"])
    t.is(readSettings({ SECURITY_CONTACT: good }).SECURITY_CONTACT, good, good);
  for (const bad of [
    "security@example.com",
    "http://example.com",
    "mailto:",
    "mailto:a",
    "https://a b",
    "tel:1",
  ])
    t.throws(() => readSettings({ SECURITY_CONTACT: bad }), { message: /SECURITY_CONTACT must/ }, bad);
});

test("HEAD answers as GET does, and other methods are not answered with a file", async (t) => {
  for (const path of ["/favicon.ico", "/robots.txt", "/.well-known/security.txt"]) {
    const head = await fetch(contact.url + path, { method: "HEAD" });
    t.is(head.status, 200, path);
    t.is(await head.text(), "", path);
    t.is((await fetch(contact.url + path, { method: "POST" })).status, 405, path);
  }
});

test("the landing page describes itself to search engines and link previews", async (t) => {
  const { text } = await sendRaw(service.url, "/", { headers: ["accept", "text/html"] });
  const html = parse(text);
  const contentOf = (selector: string) => html.querySelector(selector)?.getAttribute("content") ?? "";
  t.regex(contentOf('meta[name="description"]'), /short links/);
  t.is(contentOf('meta[property="og:title"]'), html.querySelector("h1")?.text ?? "");
  t.is(contentOf('meta[property="og:description"]'), contentOf('meta[name="description"]'));
  t.is(contentOf('meta[property="og:type"]'), "website");
  t.is(contentOf('meta[property="og:url"]'), `${service.url}/`);
});
