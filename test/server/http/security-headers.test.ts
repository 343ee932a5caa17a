import test, { type ExecutionContext } from "ava";
import knexFactory from "knex";
import { type HTMLElement, parse } from "node-html-parser";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { authorizeUrl, createApp } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const ENCRYPTION_KEY = Buffer.alloc(32, 5).toString("base64url");
const service = await startTestService({ DATABASE_URL: database.url, ENCRYPTION_KEY });

const { app, user } = await createApp(service);
test.after.always(async () => {
  await service.close();
  await database.drop();
});
const html = { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } };

async function openSignIn(browser = new TestBrowser(service.url)) {
  return { browser, page: await browser.open(authorizeUrl(service, app)) };
}

async function resetLink(): Promise<string> {
  const account = await service.storage.accounts.findByUsername(user.username);
  const token = await service.storage.accounts.createResetToken(account?.id ?? "", 60_000);
  return `${service.url}/auth/reset-password/${token}`;
}

type Shown = { url: string; status: number; headers: Headers; html: HTMLElement };

async function load(url: string, init: RequestInit = {}): Promise<Shown> {
  const answer = await fetch(url, { redirect: "manual", ...html, ...init });
  return { url, status: answer.status, headers: answer.headers, html: parse(await answer.text()) };
}

const large = new URLSearchParams({ password: "x".repeat(20_000) });

/** Every kind of page with its status. */
const PAGES: Record<string, [status: number, show: () => Promise<Shown>]> = {
  "sign-in": [200, async () => (await openSignIn()).page],
  "wrong password": [
    400,
    async () => {
      const { browser, page } = await openSignIn();
      return browser.signIn(page, { ...user, password: "not the password" });
    },
  ],
  consent: [
    200,
    async () => {
      const { browser, page } = await openSignIn();
      return browser.signIn(page, user);
    },
  ],
  "account choice": [
    200,
    async () => {
      const { browser, page } = await openSignIn();
      await browser.signIn(page, user);
      return browser.open(authorizeUrl(service, app, { prompt: "select_account" }));
    },
  ],
  "consent without an organization": [
    422,
    async () => {
      const { browser, page } = await openSignIn();
      return browser.press(await browser.signIn(page, user), "Allow", { organization_id: "org_none" });
    },
  ],
  "authorization error": [
    400,
    () => load(authorizeUrl(service, app, { redirect_uri: "https://evil.test/" })),
  ],
  "unknown client": [400, () => load(authorizeUrl(service, { ...app, clientId: "lgc_none" }))],
  "a sign-in of another browser": [400, async () => load((await openSignIn()).page.url)],
  "a form that is too large": [
    413,
    async () => {
      const { page } = await openSignIn();
      return load(`${page.url}/sign-in`, { method: "POST", body: large });
    },
  ],
  reset: [200, async () => load(await resetLink())],
  "reset with a weak password": [
    422,
    async () => load(await resetLink(), { method: "POST", body: new URLSearchParams({ password: "weak" }) }),
  ],
  "invalid reset link": [404, () => load(`${service.url}/auth/reset-password/nothing`)],
  "reset form that is too large": [413, async () => load(await resetLink(), { method: "POST", body: large })],
  "unknown short link": [404, () => load(`${service.url}/no-such-link`)],
  "unknown URL": [404, () => load(`${service.url}/no/such/page`)],
};

/** Asserts the security headers of every page. */
function checkHeaders(t: ExecutionContext, { url, headers }: Shown) {
  const isOfAuthorization = /^\/(interaction|oauth\/authorize)/.test(new URL(url).pathname);
  t.is(headers.get("content-type"), "text/html; charset=utf-8");
  t.is(headers.get("x-frame-options"), "DENY");
  t.is(headers.get("referrer-policy"), "no-referrer");
  t.is(headers.get("x-content-type-options"), "nosniff");
  t.is(headers.get("cross-origin-opener-policy"), isOfAuthorization ? "unsafe-none" : "same-origin");
  t.is(headers.get("strict-transport-security"), null, "not over http");
  const policy = (headers.get("content-security-policy") ?? "").split("; ");
  for (const rule of [
    "default-src 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "object-src 'none'",
  ]) {
    t.true(policy.includes(rule), rule);
  }
  t.true(!/unsafe|\*|data:|http:/.test(policy.join()), policy.join("; "));
}

for (const [name, [status, show]] of Object.entries(PAGES)) {
  test.serial(
    `the page “${name}” can't be framed, sends no referrer and loads nothing from other origins`,
    async (t) => {
      const shown = await show();
      t.is(shown.status, status);
      checkHeaders(t, shown);
      t.truthy(shown.html.querySelector("h1"), "it is a page of this service");
      const inline = "script:not([src]), style, [style], iframe, object, embed, base";
      t.is(shown.html.querySelectorAll(inline).length, 0);
      for (const element of shown.html.querySelectorAll("[src], [href], [action]")) {
        const { src, href, action } = element.attributes;
        t.regex(src ?? href ?? action ?? "", /^\/(?!\/)/, "same origin");
        const loaded = href ?? src;
        if (loaded) t.is((await fetch(service.url + loaded, html)).status, 200, loaded);
      }
      for (const [attribute] of shown.html
        .querySelectorAll("*")
        .flatMap((e) => Object.entries(e.attributes))) {
        t.notRegex(attribute, /^on/i);
      }
    },
  );
}

test.serial("a sign-in and a consent redirect with a 303", async (t) => {
  const { browser, page } = await openSignIn();
  const form = new URLSearchParams({
    csrf: page.html.querySelector("[name=csrf]")?.attributes.value ?? "",
    username: user.username,
    password: user.password,
  });
  const answer = await fetch(`${page.url}/sign-in`, {
    method: "POST",
    body: form,
    redirect: "manual",
    headers: { cookie: await browser.jar.getCookieString(page.url) },
  });
  t.is(answer.status, 303);
});

test.serial(
  "forms of an authorization may redirect anywhere with the app, and others only to this origin",
  async (t) => {
    const { page } = await openSignIn();
    t.notRegex(page.headers.get("content-security-policy") ?? "", /form-action/);
    const { headers } = await load(await resetLink());
    t.regex(headers.get("content-security-policy") ?? "", /(^|; )form-action 'self'(;|$)/);
  },
);

test.serial("an error without a page is JSON with the same headers", async (t) => {
  const answer = await fetch(`${service.url}/no/such/page`);
  t.is(answer.status, 404);
  t.is(answer.headers.get("x-content-type-options"), "nosniff");
  t.like(await answer.json(), { code: "not_found" });
});

test.serial(
  "an unexpected error is a page or JSON with the request ID, without a stack or a statement",
  async (t) => {
    const link = await resetLink();
    const knex = knexFactory(knexConfig(database.url));
    await knex.schema.renameTable("one_time_links", "gone");
    const shown = await load(link);
    const json = await fetch(link);
    await knex.schema.renameTable("gone", "one_time_links");
    await knex.destroy();
    t.is(shown.status, 500);
    checkHeaders(t, shown);
    t.notRegex(shown.html.toString(), /select|one_time_links|\.ts|Error/);
    t.is(json.status, 500);
    const body = (await json.json()) as { request_id: string };
    t.is(body.request_id, String(json.headers.get("x-request-id")));
    t.notRegex(JSON.stringify(body), /select|one_time_links|\.ts/);
  },
);
