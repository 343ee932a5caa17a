import test from "ava";
import { isProblem, read } from "../../harness/clients/api.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const FOREIGN = "https://evil.example";
const OTHER_PORT = "http://localhost:1";

/** The headers in which a browser describes the page that sends a request. */
const CROSS_SITE: Record<string, Record<string, string>> = {
  "from another origin": { origin: FOREIGN },
  "from another port of this host": { origin: OTHER_PORT },
  "from a page without an origin": { origin: "null" },
  "from another origin that contains the own host": { origin: `${service.url}.evil.example` },
  "from another site": { origin: "null", "sec-fetch-site": "cross-site" },
  "from another origin of the same site": { origin: OTHER_PORT, "sec-fetch-site": "same-site" },
  "from another site, with the own origin": { origin: service.url, "sec-fetch-site": "cross-site" },
  "from no page": { origin: service.url, "sec-fetch-site": "none" },
};

const OURS: Record<string, Record<string, string>> = {
  "from the own origin": { origin: service.url },
  "from an own page, which hides its origin": { origin: "null", "sec-fetch-site": "same-origin" },
  "from a program": {},
};

type Sending = { method?: string; form?: Record<string, string>; json?: object; headers: object };

/** Sends what a page could send, with the cookies of the user's browser. */
async function send(browser: TestBrowser, path: string, { method = "POST", form, json, headers }: Sending) {
  const url = service.url + path;
  return fetch(url, {
    method,
    body: form ? new URLSearchParams(form) : json ? JSON.stringify(json) : null,
    redirect: "manual",
    headers: {
      accept: form ? "text/html" : "application/json",
      ...(json && { "content-type": "application/json" }),
      cookie: await browser.jar.getCookieString(url),
      ...headers,
    },
  });
}

/** Creates a user with a signed-in browser, and the CSRF token of its forms. */
async function visitor() {
  return visitorAgain(await service.createUser([]));
}

/** Signs a user in with another browser. */
async function visitorAgain(user: TestUser) {
  const { browser, page } = await browserOf(service, user);
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value as string;
  return { user, browser, csrf };
}

type Visitor = Awaited<ReturnType<typeof visitor>>;

/** Asserts that nothing changed: both sessions, the password and the organizations are the same. */
async function isUntouched(t: { is: typeof test.prototype.is }, { user, browser }: Visitor) {
  const account = await browser.open(`${service.url}/dashboard/account`, {
    headers: { accept: "application/json" },
  });
  t.is(account.status, 200);
  const { organizations, sessions } = JSON.parse(account.text);
  t.is(organizations.length, 0);
  t.is(sessions.length, 2);
  t.is((await browserOf(service, user)).page.status, 200);
}

const NEW_PASSWORD = "a password of the attacker";
const changes = ({ user }: Visitor): [method: string, path: string, fields: Record<string, string>][] => [
  ["POST", "/auth/logout", {}],
  ["POST", "/dashboard/account/password", { current_password: user.password, new_password: NEW_PASSWORD }],
  ["POST", "/dashboard/account/sessions/delete", {}],
  ["DELETE", "/dashboard/account/sessions", {}],
  ["POST", "/dashboard/account/delete", { password: user.password }],
  ["DELETE", "/dashboard/account", { password: user.password }],
  ["POST", "/dashboard/organizations", { name: "Of the attacker" }],
];

for (const [what, headers] of Object.entries(CROSS_SITE)) {
  test(`a change ${what} is rejected, even with a CSRF token`, async (t) => {
    const visit = await visitor();
    await browserOf(service, visit.user);
    const { browser, csrf } = visit;
    for (const [method, path, fields] of changes(visit)) {
      const form = await send(browser, path, { method, form: { ...fields, csrf }, headers });
      t.is(form.status, 403, path);
      const json = await send(browser, path, {
        method,
        json: fields,
        headers: { ...headers, "x-csrf-token": csrf },
      });
      isProblem(t, await read(json), { status: 403, code: "cross_site_request" });
    }
    await isUntouched(t, visit);
  });
}

const TOKENS: Record<string, (other: Visitor, again: Visitor) => string | undefined> = {
  "without a CSRF token": () => undefined,
  "with an empty token": () => "",
  "with a made-up token": () => "a".repeat(43),
  "with the token of another user's session": ({ csrf }) => csrf,
  "with the token of another session of the user": (_other, { csrf }) => csrf,
};

for (const [what, tokenOf] of Object.entries(TOKENS)) {
  test(`a change ${what} is rejected, as JSON and as a form`, async (t) => {
    const [visit, other] = [await visitor(), await visitor()];
    const token = tokenOf(other, await visitorAgain(visit.user));
    const headers = { origin: service.url, "sec-fetch-site": "same-origin" };
    for (const [method, path, fields] of changes(visit)) {
      const form = { ...fields, ...(token !== undefined && { csrf: token }) };
      t.is((await send(visit.browser, path, { method, form, headers })).status, 403, path);
      const json = await send(visit.browser, path, {
        method,
        json: fields,
        headers: { ...headers, ...(token && { "x-csrf-token": token }) },
      });
      isProblem(t, await read(json), { status: 403, code: "invalid_csrf_token" });
    }
    await isUntouched(t, visit);
  });
}

test("JSON sent as plain text, which needs no CORS preflight, changes nothing", async (t) => {
  const visit = await visitor();
  await browserOf(service, visit.user);
  for (const [method, path, fields] of changes(visit)) {
    const answer = await fetch(service.url + path, {
      method,
      body: JSON.stringify({ ...fields, csrf: visit.csrf }),
      headers: {
        "content-type": "text/plain",
        origin: service.url,
        cookie: await visit.browser.jar.getCookieString(service.url + path),
      },
    });
    t.is(answer.status, 415, path);
  }
  await isUntouched(t, visit);
});

test("no GET request changes anything", async (t) => {
  const visit = await visitor();
  await browserOf(service, visit.user);
  for (const [, path, fields] of changes(visit)) {
    await visit.browser.open(`${service.url}${path}?${new URLSearchParams({ ...fields, csrf: visit.csrf })}`);
  }
  await isUntouched(t, visit);
});

for (const [what, headers] of Object.entries(OURS)) {
  test(`a change ${what} succeeds with the token, in the form or in its header`, async (t) => {
    const { browser, csrf } = await visitor();
    const path = "/dashboard/organizations";
    t.is((await send(browser, path, { form: { name: "One", csrf }, headers })).status, 303);
    const json = { json: { name: "Two" }, headers: { ...headers, "x-csrf-token": csrf } };
    t.is((await send(browser, path, json)).status, 201);
    t.is((await send(browser, "/auth/logout", { form: { csrf }, headers })).status, 303);
  });

  test(`a form ${what} can sign in and register, with a session and a 303`, async (t) => {
    const { username, password } = await service.createUser([]);
    const signIn = await send(new TestBrowser(service.url), "/auth/login", {
      form: { username, password },
      headers,
    });
    const registration = { username: `${username}-2`, password };
    const register = await send(new TestBrowser(service.url), "/auth/register", {
      form: registration,
      headers,
    });
    for (const answer of [signIn, register]) {
      t.is(answer.status, 303);
      t.is(answer.headers.get("location"), "/dashboard");
      t.true(answer.headers.getSetCookie().some((line) => line.startsWith("session=")));
    }
  });
}

for (const [what, headers] of Object.entries(CROSS_SITE)) {
  test(`a form ${what} can neither sign in nor register`, async (t) => {
    const { username, password } = await service.createUser([]);
    const browser = new TestBrowser(service.url);
    const newcomer = `${username}-2`;
    for (const [path, name] of [
      ["/auth/login", username],
      ["/auth/register", newcomer],
    ] as const) {
      const answer = await send(browser, path, { form: { username: name, password }, headers });
      t.is(answer.status, 403, path);
      t.deepEqual(answer.headers.getSetCookie(), []);
    }
    t.is(await service.storage.accounts.findByUsername(newcomer), undefined);
  });
}

test("a bearer token needs no CSRF token, because no other site can send it", async (t) => {
  const { user } = await visitor();
  const { username, password } = user;
  const login = await send(new TestBrowser(service.url), "/auth/login", {
    json: { username, password },
    headers: {},
  });
  const { access_token } = (await login.json()) as { access_token: string };
  const headers = { authorization: `Bearer ${access_token}`, origin: FOREIGN };
  const made = await send(new TestBrowser(service.url), "/dashboard/organizations", {
    json: { name: "Mine" },
    headers,
  });
  t.is(made.status, 201);
  t.is(made.headers.get("access-control-allow-origin"), null, "a foreign page can't read the response");
});
