import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { authorizeUrlOf, type DocumentClient } from "../../harness/clients/document-client.ts";
import { authorizeUrl, createApp, openConsent, sendForm } from "../../harness/clients/oauth.ts";
import { register } from "../../harness/clients/registration.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { startTestService } from "../../harness/service.ts";

const publisher = await startPublisher(["evil.example"]);
const service = await startTestService(
  { ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" },
  publisher.connections,
);
const organization = await service.createOrganization();
await service.storage.organizationSettings.change(organization.id, { allowedClients: "any" }, OPERATOR);
const member = await service.createUser([organization.id]);

const { app, own, user } = await createApp(service);

test.after.always(async () => {
  publisher.close();
  await service.close();
});

/** Returns the text of the consent page, and of the sign-in page before it. */
async function read(client: DocumentClient) {
  const browser = new TestBrowser(service.url);
  const url = authorizeUrlOf(service, client);
  const signIn = await browser.open(url);
  const consent = await openConsent(browser, member, url);
  const [signInText = "", text = ""] = [signIn, consent].map(({ html }) =>
    (html.querySelector("main")?.structuredText ?? "").replaceAll(/\s+/g, " "),
  );
  return { signIn: signInText, text };
}

test("a known client is shown with its name, its publisher and as verified", async (t) => {
  const { signIn, text } = await read({
    clientId: "https://chatgpt.com/oauth/client.json",
    redirectUri: "https://chatgpt.com/connector_platform_oauth_redirect",
  });
  t.regex(signIn, /ChatGPT wants to access your account\./);
  t.regex(text, /ChatGPT is requesting access/);
  t.regex(
    text,
    /Identity published by chatgpt\.com\. Verified: this app is on linkgate’s list of known apps\./,
  );
  t.regex(text, /You’ll be redirected to chatgpt\.com\./);
  t.notRegex(text, /Not verified|runs on your computer/);
});

test("a known client on the user's computer comes with a warning", async (t) => {
  const { text } = await read({
    clientId: "https://claude.ai/oauth/claude-code-client-metadata",
    redirectUri: "http://127.0.0.1:40123/callback",
  });
  t.regex(text, /Claude Code is requesting access/);
  t.regex(
    text,
    /Identity published by claude\.ai\. This app is on linkgate’s list of known apps, but other programs/,
  );
  t.notRegex(text, /Verified/);
  t.regex(text, /You’ll be redirected to 127\.0\.0\.1:40123\./);
  t.regex(text, /This app runs on your computer\. Continue only if you just started it\./);
});

for (const [client_name, redirectUri] of [
  ["ChatGPT", "https://evil.example/callback"],
  ["Claude Code", "http://localhost:40123/callback"],
  ["<script>alert(1)</script>", "com.evil.app:/callback"],
] as const) {
  test(`another client that calls itself ${client_name} is shown by its host, as not verified`, async (t) => {
    const clientId = `https://evil.example/${encodeURIComponent(client_name)}`;
    publisher.publish(clientId, {
      body: { client_id: clientId, client_name, redirect_uris: [redirectUri.replace(":40123", "")] },
    });
    const { signIn, text } = await read({ clientId, redirectUri });
    t.regex(signIn, /evil\.example, an app that isn’t verified, wants to access your account\./);
    t.regex(text, /evil\.example is requesting access/);
    t.regex(text, /Identity published by evil\.example\. Not verified: this app isn’t on linkgate’s list/);
    t.false(signIn.includes(client_name));
    t.false(text.includes(client_name));
    t.is(/runs on your computer/.test(text), redirectUri.includes("localhost"));
  });
}

test("a registered client is shown with the name that it chose, as not verified", async (t) => {
  const client = await register(service, {
    client_name: "ChatGPT",
    redirect_uris: ["https://evil.example/callback"],
  });
  const { signIn, text } = await read(client);
  t.regex(signIn, /“ChatGPT”, an app that isn’t verified, wants to access your account\./);
  t.notRegex(signIn, /An app by/);
  t.regex(text, /“ChatGPT” is requesting access/);
  t.regex(text, /Unverified app: anyone can use this name\./);
  t.regex(text, /You’ll be redirected to evil\.example\./);
  t.notRegex(text, /Identity published/);
});

/** Opens every kind of page that an authorization can show. */
async function openPages(): Promise<Record<string, Page>> {
  const browser = new TestBrowser(service.url);
  const signIn = await browser.open(authorizeUrl(service, app));
  const failedSignIn = await browser.signIn(signIn, { ...user, password: "wrong" });
  const consent = await browser.signIn(failedSignIn, user);
  const choice = await browser.open(authorizeUrl(service, app, { prompt: "select_account" }));
  const invalidRequest = await browser.open(
    authorizeUrl(service, app, { redirect_uri: "https://evil.example/" }),
  );
  const expired = await browser.open(`${service.url}/interaction/unknown`);
  return { signIn, failedSignIn, consent, choice, invalidRequest, expired };
}

test("every page has a way on: a link or a button", async (t) => {
  for (const [name, { html }] of Object.entries(await openPages()))
    t.truthy(html.querySelector("main a, main button"), name);
});

test("no page can be framed", async (t) => {
  for (const [name, { headers }] of Object.entries(await openPages())) {
    t.is(headers.get("x-frame-options"), "DENY", name);
    t.regex(headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/, name);
  }
});

test("no page runs an inline script or loads anything from another origin", async (t) => {
  for (const [name, { headers, html }] of Object.entries(await openPages())) {
    const policy = headers.get("content-security-policy") ?? "";
    t.regex(policy, /default-src 'none'/, name);
    t.regex(policy, /base-uri 'none'/, name);
    t.notRegex(policy, /unsafe-|\*/, name);
    const scripts = html
      .querySelectorAll("script")
      .map(({ attributes, text }) => [attributes.src?.split("?")[0], text]);
    t.deepEqual(scripts, /signIn/i.test(name) ? [["/assets/passkeys.js", ""]] : [], name);
    for (const element of html.querySelectorAll("[src],link[href]")) {
      t.regex(element.attributes.src ?? element.attributes.href ?? "", /^\/assets\//, name);
    }
  }
});

test("no page sends a referrer or is cached", async (t) => {
  for (const [name, { headers }] of Object.entries(await openPages())) {
    t.is(headers.get("referrer-policy"), "no-referrer", name);
    t.is(headers.get("x-content-type-options"), "nosniff", name);
    t.regex(headers.get("cache-control") ?? "", /no-store/, name);
  }
});

test("signing in and approving redirect with 303", async (t) => {
  const browser = new TestBrowser(service.url);
  const url = authorizeUrl(service, app);
  const { username, password } = user;
  const signedIn = await sendForm(browser, await browser.open(url), { username, password });
  t.is(signedIn.status, 303);
  const consent = await openConsent(browser, user, url);
  const allowed = await sendForm(browser, consent, { decision: "allow", organization_id: own.id });
  t.is(allowed.status, 303);
});

test("the consent page names the app, the user, the redirect host, the scopes and the lifetime", async (t) => {
  const scope = "openid links:write webhooks:read";
  const browser = new TestBrowser(service.url);
  const { text } = await openConsent(browser, user, authorizeUrl(service, app, { scope }));
  for (const part of [
    app.name,
    user.username,
    own.name,
    "app.example.com",
    "Create, edit and delete links",
    "View webhooks",
    "View your user ID",
    "90 days",
  ]) {
    t.true(text.includes(part), part);
  }
  t.false(text.includes("Create, edit and delete webhooks"));
});

test("organization names are escaped", async (t) => {
  const name = "<img src=x onerror=alert(1)>";
  const evil = await service.createOrganization(name);
  await service.storage.clients.setRedirectUris(evil.id, ["https://app.example.com/callback"], OPERATOR);
  for (const names of [[name], [name, name]]) {
    const ids: string[] = [];
    for (const one of names) ids.push((await service.createOrganization(one)).id);
    const victim = await service.createUser(ids);
    const browser = new TestBrowser(service.url);
    const signIn = await browser.open(authorizeUrl(service, evil));
    const consent = await browser.signIn(signIn, victim);
    const choice = await browser.open(authorizeUrl(service, evil, { prompt: "select_account" }));
    for (const page of [signIn, consent, choice]) {
      t.is(page.html.querySelector("img[src=x]"), null);
      t.true(page.html.querySelector("main")?.textContent.includes(name) ?? false);
    }
  }
});

test("a login hint is escaped", async (t) => {
  const hint = `"><img src=x onerror=alert(1)>`;
  const url = authorizeUrl(service, app, { login_hint: hint });
  const page = await new TestBrowser(service.url).open(url);
  t.is(page.html.querySelector("img[src=x]"), null);
  t.is(page.html.querySelector("#username")?.getAttribute("value"), hint);
});

test("the consent page warns about a redirect to the user's own computer", async (t) => {
  const { app: native, user: owner } = await createApp(service, [
    "http://127.0.0.1/cb",
    "com.example.app:/cb",
  ]);
  const open = (redirect_uri: string) =>
    openConsent(new TestBrowser(service.url), owner, authorizeUrl(service, native, { redirect_uri }));
  t.regex((await open("http://127.0.0.1:4321/cb")).text, /runs on your computer/);
  t.true((await open("com.example.app:/cb")).text.includes("com.example.app"));
});

test("the pages of an authorization have every CSP directive except form-action", async (t) => {
  const { invalidRequest, ...steps } = await openPages();
  for (const [name, { headers }] of Object.entries(steps)) {
    t.deepEqual(
      (headers.get("content-security-policy") ?? "").split("; ").sort(),
      [
        "base-uri 'none'",
        "default-src 'none'",
        "font-src 'self'",
        "frame-ancestors 'none'",
        "img-src 'self'",
        "object-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
      ],
      name,
    );
  }
  t.regex(invalidRequest?.headers.get("content-security-policy") ?? "", /; form-action 'self'(;|$)/);
});

test("the pages of an authorization keep a popup connected to the app that opened it", async (t) => {
  const browser = new TestBrowser(service.url);
  const shown = [
    ...Object.values(await openPages()),
    await browser.open(authorizeUrl(service, app, { prompt: "none" })),
    await browser.open(`${service.url}/oauth/authorize/nothing`),
    await browser.open(`${service.url}/auth/sso`),
    await browser.open(`${service.url}/auth/sso/callback`),
  ];
  for (const { url, headers } of shown) t.is(headers.get("cross-origin-opener-policy"), "unsafe-none", url);
  for (const path of ["/auth/login", "/auth/register", "/dashboard", "/auth/ssorry", "/docs"]) {
    const { headers } = await browser.open(service.url + path);
    t.is(headers.get("cross-origin-opener-policy"), "same-origin", path);
  }
});
