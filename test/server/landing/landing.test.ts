import test from "ava";
import { parse } from "node-html-parser";
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
test.after.always(() => Promise.all([service, invite, apart, resources].map((one) => one.close())));

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

for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
  test(`${method} / is 405 with the allowed methods`, async (t) => {
    const answer = await open(service, { accept: "application/json" }, method);
    t.is(answer.status, 405);
    t.is(answer.headers.get("allow"), "GET, HEAD");
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
