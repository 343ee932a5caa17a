import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { authorizeUrl, createApp, openConsent, sendForm } from "../harness/oauth.ts";
import { type Page, Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

/** Every kind of page that an authorization can show. */
async function pages(): Promise<Record<string, Page>> {
  const person = new Person(service.url);
  const signIn = await person.open(authorizeUrl(service, app));
  const again = await person.signIn(signIn, { ...user, password: "wrong" });
  const consent = await person.signIn(again, user);
  const choice = await person.open(authorizeUrl(service, app, { prompt: "select_account" }));
  const refusal = await person.open(authorizeUrl(service, app, { redirect_uri: "https://evil.example/" }));
  const over = await person.open(`${service.url}/interaction/nobody`);
  return { signIn, again, consent, choice, refusal, over };
}

test("sec 21: no page can be framed", async (t) => {
  for (const [name, { headers }] of Object.entries(await pages())) {
    t.is(headers.get("x-frame-options"), "DENY", name);
    t.regex(headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/, name);
  }
});

test("sec 21: no page runs a script or loads from elsewhere", async (t) => {
  for (const [name, { headers, html }] of Object.entries(await pages())) {
    const policy = headers.get("content-security-policy") ?? "";
    t.regex(policy, /default-src 'none'/, name);
    t.regex(policy, /base-uri 'none'/, name);
    t.notRegex(policy, /unsafe-|\*/, name);
    t.is(html.querySelector("script"), null, name);
    for (const element of html.querySelectorAll("[src],link[href]")) {
      t.regex(element.attributes.src ?? element.attributes.href ?? "", /^\/assets\//, name);
    }
  }
});

test("sec 23: no page tells another one its address, none is kept", async (t) => {
  for (const [name, { headers }] of Object.entries(await pages())) {
    t.is(headers.get("referrer-policy"), "no-referrer", name);
    t.is(headers.get("x-content-type-options"), "nosniff", name);
    t.regex(headers.get("cache-control") ?? "", /no-store/, name);
  }
});

test("sec 22: the answer to a sign-in and to a consent is a 303", async (t) => {
  const person = new Person(service.url);
  const url = authorizeUrl(service, app);
  const { username, password } = user;
  const signedIn = await sendForm(person, await person.open(url), { username, password });
  t.is(signedIn.status, 303);
  const consent = await openConsent(person, user, url);
  const allowed = await sendForm(person, consent, { decision: "allow", organization_id: own.id });
  t.is(allowed.status, 303);
});

test("sec 27: the consent page names the app, the person, where it leads, the scopes and the lifetime", async (t) => {
  const scope = "openid links:write webhooks:read";
  const person = new Person(service.url);
  const { text } = await openConsent(person, user, authorizeUrl(service, app, { scope }));
  for (const part of [
    app.name,
    user.username,
    own.name,
    "app.example.com",
    "Create, change and delete links",
    "See the webhooks of the organization",
    "Know who you are",
    "90 days",
  ]) {
    t.true(text.includes(part), part);
  }
  t.false(text.includes("Create, change and delete webhooks"));
});

test("sec 27: the name of an organization is text", async (t) => {
  const name = "<img src=x onerror=alert(1)>";
  const evil = await service.createOrganization(name);
  await service.storage.clients.setRedirectUris(evil.id, ["https://app.example.com/callback"], OPERATOR);
  for (const names of [[name], [name, name]]) {
    const ids: string[] = [];
    for (const one of names) ids.push((await service.createOrganization(one)).id);
    const victim = await service.createUser(ids);
    const person = new Person(service.url);
    const signIn = await person.open(authorizeUrl(service, evil));
    const consent = await person.signIn(signIn, victim);
    const choice = await person.open(authorizeUrl(service, evil, { prompt: "select_account" }));
    for (const page of [signIn, consent, choice]) {
      t.is(page.html.querySelector("img"), null);
      t.true(page.html.querySelector("main")?.textContent.includes(name) ?? false);
    }
  }
});

test("sec 27: what a link fills in for the person is text", async (t) => {
  const hint = `"><img src=x onerror=alert(1)>`;
  const url = authorizeUrl(service, app, { login_hint: hint });
  const page = await new Person(service.url).open(url);
  t.is(page.html.querySelector("img"), null);
  t.is(page.html.querySelector("#username")?.getAttribute("value"), hint);
});

test("a redirect to this computer is warned of", async (t) => {
  const { app: native, user: person } = await createApp(service, [
    "http://127.0.0.1/cb",
    "com.example.app:/cb",
  ]);
  const open = (redirect_uri: string) =>
    openConsent(new Person(service.url), person, authorizeUrl(service, native, { redirect_uri }));
  t.regex((await open("http://127.0.0.1:4321/cb")).text, /runs on this computer/);
  t.true((await open("com.example.app:/cb")).text.includes("com.example.app"));
});

test("sec 120: the pages of an authorization keep every directive but form-action", async (t) => {
  const { refusal, ...steps } = await pages();
  for (const [name, { headers }] of Object.entries(steps)) {
    t.deepEqual(
      (headers.get("content-security-policy") ?? "").split("; ").sort(),
      [
        "base-uri 'none'",
        "default-src 'none'",
        "frame-ancestors 'none'",
        "img-src 'self'",
        "object-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
      ],
      name,
    );
  }
  t.regex(refusal?.headers.get("content-security-policy") ?? "", /; form-action 'self'(;|$)/);
});

test("the pages of an authorization keep a popup connected to the app that opened it", async (t) => {
  const person = new Person(service.url);
  const shown = [
    ...Object.values(await pages()),
    await person.open(authorizeUrl(service, app, { prompt: "none" })),
    await person.open(`${service.url}/oauth/authorize/nothing`),
    await person.open(`${service.url}/auth/sso`),
    await person.open(`${service.url}/auth/sso/callback`),
  ];
  for (const { url, headers } of shown) t.is(headers.get("cross-origin-opener-policy"), "unsafe-none", url);
  for (const path of ["/auth/login", "/auth/register", "/dashboard", "/auth/ssorry", "/docs"]) {
    const { headers } = await person.open(service.url + path);
    t.is(headers.get("cross-origin-opener-policy"), "same-origin", path);
  }
});
