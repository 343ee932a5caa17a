import test, { type ExecutionContext } from "ava";
import { isProblem, read } from "../harness/clients/api.ts";
import { browserOf } from "../harness/clients/dashboard.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { startTestService, type TestUser } from "../harness/service.ts";

const service = await startTestService();

const FOREIGN = { origin: "https://evil.example" };

type Sending = { method?: string; form?: Record<string, string>; json?: object; headers: object };

/** Sends what a page could send, with the cookies of the user's browser. */
async function send(browser: TestBrowser, path: string, { method = "POST", form, json, headers }: Sending) {
  const url = service.url + path;
  return fetch(url, {
    method,
    body: form ? new URLSearchParams(form) : JSON.stringify(json),
    redirect: "manual",
    headers: {
      accept: form ? "text/html" : "application/json",
      ...(json && { "content-type": "application/json" }),
      cookie: await browser.jar.getCookieString(url),
      ...headers,
    },
  });
}

async function refusesAll(t: ExecutionContext, visit: Visitor, headers: object, code: string, csrf?: string) {
  for (const [method, path, fields] of changes(visit)) {
    const form = { ...fields, ...(csrf !== undefined && { csrf }) };
    t.is((await send(visit.browser, path, { method, form, headers })).status, 403, path);
    const both = { ...headers, ...(csrf !== undefined && { "x-csrf-token": csrf }) };
    const json = await send(visit.browser, path, { method, json: fields, headers: both });
    isProblem(t, await read(json), { status: 403, code });
  }
  await isUntouched(t, visit);
}

async function signIn(user: TestUser) {
  const { browser, page } = await browserOf(service, user);
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value as string;
  return { user, browser, csrf };
}

async function createVisitor() {
  const user = await service.createUser([]);
  return { ...(await signIn(user)), again: await signIn(user) };
}

type Visitor = Awaited<ReturnType<typeof createVisitor>>;

async function isUntouched(t: ExecutionContext, { user, browser }: Visitor) {
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

test("a change from another origin is rejected, even with a CSRF token", async (t) => {
  const visit = await createVisitor();
  await refusesAll(t, visit, FOREIGN, "cross_site_request", visit.csrf);
});

test("another site can neither sign a visitor in nor register one", async (t) => {
  const { username, password } = await service.createUser([]);
  for (const origin of [FOREIGN.origin, "http://localhost:1"])
    for (const path of ["/auth/login", "/auth/register"]) {
      const form = { username: path === "/auth/login" ? username : `${username}-2`, password };
      const answer = await send(new TestBrowser(service.url), path, { form, headers: { origin } });
      t.deepEqual([answer.status, answer.headers.getSetCookie()], [403, []], path);
    }
  t.is(await service.storage.accounts.findByUsername(`${username}-2`), undefined);
});

const TOKENS: Record<string, (visit: Visitor, other: Visitor) => string | undefined> = {
  "without a CSRF token": () => undefined,
  "with the token of another user's session": (_visit, { csrf }) => csrf,
  "with the token of another session of the user": ({ again }) => again.csrf,
};

for (const [what, tokenOf] of Object.entries(TOKENS))
  test(`a change ${what} is rejected, as JSON and as a form`, async (t) => {
    const visit = await createVisitor();
    const token = tokenOf(visit, await createVisitor());
    const headers = { origin: service.url, "sec-fetch-site": "same-origin" };
    await refusesAll(t, visit, headers, "invalid_csrf_token", token);
  });

test("neither JSON sent as plain text, which needs no CORS preflight, nor any GET request changes anything", async (t) => {
  const visit = await createVisitor();
  for (const [method, path, fields] of changes(visit)) {
    const json = { ...fields, csrf: visit.csrf };
    const headers = { "content-type": "text/plain", origin: service.url };
    t.is((await send(visit.browser, path, { method, json, headers })).status, 415, path);
    await visit.browser.open(`${service.url}${path}?${new URLSearchParams(json)}`);
  }
  await isUntouched(t, visit);
});

test("a change succeeds with the token of the session, in the form or in its header", async (t) => {
  const { browser, csrf } = await createVisitor();
  const path = "/dashboard/organizations";
  const headers = { origin: service.url };
  t.is((await send(browser, path, { form: { name: "One", csrf }, headers })).status, 303);
  const json = { json: { name: "Two" }, headers: { ...headers, "x-csrf-token": csrf } };
  t.is((await send(browser, path, json)).status, 201);
  t.is((await send(browser, "/auth/logout", { form: { csrf }, headers })).status, 303);
});
