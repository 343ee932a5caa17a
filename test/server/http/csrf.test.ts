import test from "ava";
import { isProblem, read } from "../../harness/api.ts";
import { browserOf } from "../../harness/dashboard.ts";
import { Person } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const FOREIGN = "https://evil.example";
const OTHER_PORT = "http://localhost:1";

/** What a browser says of the page that a request comes from. */
const CROSS_SITE: Record<string, Record<string, string>> = {
  "from another origin": { origin: FOREIGN },
  "from another port of this host": { origin: OTHER_PORT },
  "from a page without an origin": { origin: "null" },
  "from another origin that has our name in it": { origin: `${service.url}.evil.example` },
  "from another site": { origin: "null", "sec-fetch-site": "cross-site" },
  "from a neighbour of the same site": { origin: OTHER_PORT, "sec-fetch-site": "same-site" },
  "from another site, with our origin": { origin: service.url, "sec-fetch-site": "cross-site" },
  "from no page at all": { origin: service.url, "sec-fetch-site": "none" },
};

const OURS: Record<string, Record<string, string>> = {
  "from our origin": { origin: service.url },
  "from our page, which hides its origin": { origin: "null", "sec-fetch-site": "same-origin" },
  "from no browser": {},
};

type Sending = { method?: string; form?: Record<string, string>; json?: object; headers: object };

/** Sends what a page could send, with the cookies of the person's browser. */
async function send(person: Person, path: string, { method = "POST", form, json, headers }: Sending) {
  const url = service.url + path;
  return fetch(url, {
    method,
    body: form ? new URLSearchParams(form) : json ? JSON.stringify(json) : undefined,
    redirect: "manual",
    headers: {
      accept: form ? "text/html" : "application/json",
      ...(json && { "content-type": "application/json" }),
      cookie: await person.jar.getCookieString(url),
      ...headers,
    },
  });
}

/** Somebody whose browser is signed in, and the token in the forms of that browser. */
async function visitor() {
  const user = await service.createUser([]);
  const { person, page } = await browserOf(service, user);
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value as string;
  return { user, person, csrf };
}

type Visitor = Awaited<ReturnType<typeof visitor>>;

/** That nothing happened: still signed in, in two places, with the old password, and owner of nothing. */
async function isUntouched(t: { is: typeof test.prototype.is }, { user, person }: Visitor) {
  const account = await person.open(`${service.url}/dashboard/account`, {
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
  test(`sec 119: no change that comes ${what} is made, not even with the token of the form`, async (t) => {
    const visit = await visitor();
    await browserOf(service, visit.user);
    const { person, csrf } = visit;
    for (const [method, path, fields] of changes(visit)) {
      const form = await send(person, path, { method, form: { ...fields, csrf }, headers });
      t.is(form.status, 403, path);
      const json = await send(person, path, {
        method,
        json: fields,
        headers: { ...headers, "x-csrf-token": csrf },
      });
      isProblem(t, await read(json), { status: 403, code: "cross_site_request" });
    }
    await isUntouched(t, visit);
  });
}

const TOKENS: Record<string, (other: Visitor) => string | undefined> = {
  "without the token of the form": () => undefined,
  "with an empty token": () => "",
  "with a token that was made up": () => "a".repeat(43),
  "with the token of another session": ({ csrf }) => csrf,
};

for (const [what, tokenOf] of Object.entries(TOKENS)) {
  test(`sec 119: no change ${what} is made, as JSON or as a form`, async (t) => {
    const [visit, other] = [await visitor(), await visitor()];
    await browserOf(service, visit.user);
    const token = tokenOf(other);
    const headers = { origin: service.url, "sec-fetch-site": "same-origin" };
    for (const [method, path, fields] of changes(visit)) {
      const form = { ...fields, ...(token !== undefined && { csrf: token }) };
      t.is((await send(visit.person, path, { method, form, headers })).status, 403, path);
      const json = await send(visit.person, path, {
        method,
        json: fields,
        headers: { ...headers, ...(token && { "x-csrf-token": token }) },
      });
      isProblem(t, await read(json), { status: 403, code: "invalid_csrf_token" });
    }
    await isUntouched(t, visit);
  });
}

test("sec 119: JSON in the clothes of plain text, which needs no leave of ours to be sent, changes nothing", async (t) => {
  const visit = await visitor();
  await browserOf(service, visit.user);
  for (const [method, path, fields] of changes(visit)) {
    const answer = await fetch(service.url + path, {
      method,
      body: JSON.stringify({ ...fields, csrf: visit.csrf }),
      headers: {
        "content-type": "text/plain",
        origin: service.url,
        cookie: await visit.person.jar.getCookieString(service.url + path),
      },
    });
    t.is(answer.status, 415, path);
  }
  await isUntouched(t, visit);
});

test("sec 119: no address changes anything when it is only opened", async (t) => {
  const visit = await visitor();
  await browserOf(service, visit.user);
  for (const [, path, fields] of changes(visit)) {
    await visit.person.open(`${service.url}${path}?${new URLSearchParams({ ...fields, csrf: visit.csrf })}`);
  }
  await isUntouched(t, visit);
});

for (const [what, headers] of Object.entries(OURS)) {
  test(`a change that comes ${what} is made with the token, in the form or in its header`, async (t) => {
    const { person, csrf } = await visitor();
    const path = "/dashboard/organizations";
    t.is((await send(person, path, { form: { name: "One", csrf }, headers })).status, 303);
    const json = { json: { name: "Two" }, headers: { ...headers, "x-csrf-token": csrf } };
    t.is((await send(person, path, json)).status, 201);
    t.is((await send(person, "/auth/logout", { form: { csrf }, headers })).status, 303);
  });

  test(`a form that comes ${what} signs in and registers, with a session and a 303`, async (t) => {
    const { username, password } = await service.createUser([]);
    const signIn = await send(new Person(service.url), "/auth/login", {
      form: { username, password },
      headers,
    });
    const registration = { username: `${username}-2`, password };
    const register = await send(new Person(service.url), "/auth/register", { form: registration, headers });
    for (const answer of [signIn, register]) {
      t.is(answer.status, 303);
      t.is(answer.headers.get("location"), "/dashboard");
      t.true(answer.headers.getSetCookie().some((line) => line.startsWith("session=")));
    }
  });
}

for (const [what, headers] of Object.entries(CROSS_SITE)) {
  test(`sec 119: a form that comes ${what} neither signs in nor registers`, async (t) => {
    const { username, password } = await service.createUser([]);
    const person = new Person(service.url);
    const newcomer = `${username}-2`;
    for (const [path, name] of [
      ["/auth/login", username],
      ["/auth/register", newcomer],
    ] as const) {
      const answer = await send(person, path, { form: { username: name, password }, headers });
      t.is(answer.status, 403, path);
      t.deepEqual(answer.headers.getSetCookie(), []);
    }
    t.is(await service.storage.accounts.findByUsername(newcomer), undefined);
  });
}

test("sec 119: a token in the header needs no token of a form: no other site can send it", async (t) => {
  const { user } = await visitor();
  const { username, password } = user;
  const login = await send(new Person(service.url), "/auth/login", {
    json: { username, password },
    headers: {},
  });
  const { access_token } = (await login.json()) as { access_token: string };
  const headers = { authorization: `Bearer ${access_token}`, origin: FOREIGN };
  const made = await send(new Person(service.url), "/dashboard/organizations", {
    json: { name: "Mine" },
    headers,
  });
  t.is(made.status, 201);
  t.is(made.headers.get("access-control-allow-origin"), null, "though its page may not read the answer");
});
