import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { firstPartyAt, isTokenAnswer, newName, PASSWORD } from "../../harness/clients/first-party.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { postForm, startTestService } from "../../harness/service.ts";

export const databases = "all";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
// No endpoint disables a user yet, so the test changes the row.
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});
const api = apiAt(service.url);

const { post, me, register } = firstPartyAt(service.url);

test("registering creates a user who owns an organization on the free plan, and signs in", async (t) => {
  const username = newName();
  const reply = await post("/auth/register", {
    username,
    password: PASSWORD,
    organization_name: "Söhne & Co",
  });
  t.is(reply.status, 201);
  isTokenAnswer(t, reply);
  const { user, organization } = reply.body;
  t.regex(user.id, /^usr_/);
  t.deepEqual(user, { id: user.id, username });
  t.deepEqual(organization, { id: organization.id, name: "Söhne & Co", plan: "free" });
  const { status, body } = await me(reply.body.access_token);
  t.is(status, 200);
  t.deepEqual(body as unknown, { user, organizations: [{ ...organization, role: "owner" }] });
});

test("without a name, the organization is named after the user", async (t) => {
  const { user, organization } = await register();
  t.is(organization.name, `${user.username}'s organization`);
});

test("a taken username is rejected in every spelling, and no organization is created", async (t) => {
  const { user } = await register();
  const organization_name = `Unmade ${user.id}`;
  for (const username of [user.username, user.username.toUpperCase()]) {
    const reply = await post("/auth/register", { username, password: PASSWORD, organization_name });
    isProblem(t, reply, { status: 409, code: "username_taken", fields: ["username"] });
  }
  t.false((await service.storage.organizations.list()).some(({ name }) => name === organization_name));
});

test("of ten concurrent registrations of one username, exactly one succeeds", async (t) => {
  const fields = { username: newName(), password: PASSWORD };
  const replies = await Promise.all(Array.from({ length: 10 }, () => post("/auth/register", fields)));
  const statuses = replies.map(({ status }) => status).sort();
  t.deepEqual(statuses, [201, ...Array.from({ length: 9 }, () => 409)]);
});

const REFUSED: [what: string, fields: object, names: string[]][] = [
  ["no fields", { username: undefined, password: undefined }, ["username", "password"]],
  ["a short username", { username: "ab" }, ["username"]],
  ["a username with a line break", { username: "someone\n" }, ["username"]],
  ["a username whose letters fold to many", { username: "\ufdfa".repeat(4) }, ["username"]],
  ["a username that is too long after folding", { username: "\ufb00".repeat(40) }, ["username"]],
  ["a username that is too long in lower case", { username: "\u0130".repeat(40) }, ["username"]],
  ["a name reserved for the audit log", { username: "Operator" }, ["username"]],
  ["a username that is not a string", { username: 7 }, ["username"]],
  ["a short password", { password: "seven77" }, ["password"]],
  ["a password of 129 characters", { password: "a".repeat(129) }, ["password"]],
  ["a common password", { password: "password123" }, ["password"]],
  ["the username as password", { username: "some.body", password: "some.body" }, ["password"]],
  ["a name of 101 characters", { organization_name: "a".repeat(101) }, ["organization_name"]],
  ["a name with a NUL", { organization_name: "a\u0000b" }, ["organization_name"]],
];

for (const [what, fields, names] of REFUSED) {
  test(`a registration with ${what} is rejected, as JSON and as a form`, async (t) => {
    const input = { username: newName(), password: PASSWORD, ...fields };
    const reply = await post("/auth/register", input);
    const code = names.length === 1 ? `invalid_${names[0]}` : "invalid_request";
    isProblem(t, reply, { status: 422, code, fields: names });

    const browser = new TestBrowser(service.url);
    const page = await browser.open(`${service.url}/auth/register`);
    const texts = Object.entries(input).map(([name, value]) => [name, String(value ?? "")]);
    const answer = await browser.press(page, "Create account", Object.fromEntries(texts));
    if (typeof (fields as { username?: unknown }).username === "number") {
      t.pass("a form can only send strings");
      return;
    }
    t.is(answer.status, 422);
    t.truthy(answer.html.querySelector("[role=alert]"));
    t.is(answer.html.querySelector("#password")?.attributes.value, undefined);
  });
}

for (const [what, send] of Object.entries({
  "malformed JSON": () =>
    api.send("POST", "/auth/register", { body: "{", headers: { "content-type": "application/json" } }),
  "a JSON array": () => api.send("POST", "/auth/register", { json: [] }),
})) {
  test(`${what} is rejected`, async (t) => isProblem(t, await send(), { status: 400, code: "invalid_json" }));
}

for (const [encoding, status] of [
  ["compress", 415],
  ["x-unknown", 415],
  ["gzip", 400],
] as const) {
  for (const [type, body] of [
    ["application/json", '{"username":"a"}'],
    ["application/x-www-form-urlencoded", "username=a"],
  ] as const) {
    test(`a body of type ${type} that isn't ${encoding} as announced is rejected`, async (t) => {
      const headers = { "content-type": type, "content-encoding": encoding };
      const answer = await api.send("POST", "/auth/login", { body, headers });
      t.is(answer.status, status);
      if (status === 415) t.regex(answer.body.detail as string, /gzip, deflate or br/);
    });
  }
}

test("other content types and bodies over the limit are rejected", async (t) => {
  const headers = { "content-type": "text/plain" };
  const plain = await api.send("POST", "/auth/login", { body: '{"username":"a"}', headers });
  isProblem(t, plain, { status: 415, code: "unsupported_media_type" });
  const large = await api.send("POST", "/auth/login", { json: { username: "a".repeat(70_000) } });
  isProblem(t, large, { status: 413, code: "body_too_large" });
});

test("a login by JSON or by a form returns tokens", async (t) => {
  const { user } = await register();
  const fields = { username: user.username.toUpperCase(), password: PASSWORD };
  const reply = await post("/auth/login", fields);
  t.is(reply.status, 200);
  isTokenAnswer(t, reply);
  t.deepEqual(reply.body.user, user);
  t.is((await me(reply.body.access_token)).status, 200);
  const form = await postForm(`${service.url}/auth/login`, fields);
  t.is(form.status, 200);
});

test("wrong passwords, unknown usernames and users without a password get the same response", async (t) => {
  const { user } = await register();
  const { accounts } = service.storage;
  const external = await accounts.create(newName(), null, OPERATOR);
  const { user: disabled } = await register();
  await knex("users").where({ id: disabled.id }).update({ disabled_at: Date.now() });
  const replies = [];
  for (const fields of [
    { username: user.username, password: "wrong password" },
    { username: "no such user", password: "wrong password" },
    { username: external?.username, password: "wrong password" },
    { username: external?.username, password: "" },
    { username: disabled.username, password: PASSWORD },
    { username: user.username },
    { username: "a\u0000b", password: PASSWORD },
    { username: [user.username], password: PASSWORD },
    {},
  ]) {
    const reply = await post("/auth/login", fields);
    isProblem(t, reply, { status: 401, code: "invalid_credentials" });
    const { headers } = reply;
    const kept = ["www-authenticate", "cache-control", "retry-after"].map((name) => headers.get(name));
    replies.push({ ...reply.body, request_id: undefined, kept });
  }
  for (const reply of replies) t.deepEqual(reply, replies[0]);
});

test("a disabled user is signed out immediately, by token and session, and can't sign in again", async (t) => {
  const { user, access_token, refresh_token } = await register();
  const browser = new TestBrowser(service.url);
  const page = await browser.signIn(
    await browser.open(`${service.url}/auth/login?return_to=/dashboard/account`),
    {
      ...user,
      password: PASSWORD,
    },
  );
  t.is(page.status, 200);
  await knex("users").where({ id: user.id }).update({ disabled_at: Date.now() });
  t.is((await me(access_token)).status, 401);
  t.is((await post("/auth/refresh", { refresh_token })).status, 401);
  t.is((await post("/auth/login", { username: user.username, password: PASSWORD })).status, 401);
  t.true((await browser.open(`${service.url}/dashboard/account`)).url.includes("/auth/login"));
});

test("a request without a user gets a 401, or in a browser the sign-in page and then the requested page", async (t) => {
  isProblem(t, await api.send("GET", "/dashboard/me"), { status: 401, code: "sign_in_required" });
  isProblem(t, await api.send("POST", "/auth/logout"), { status: 401, code: "sign_in_required" });
  const { user } = await register();
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/dashboard/account`);
  t.is(page.html.querySelector("h1")?.text, "Sign in");
  const inside = await browser.signIn(page, { ...user, password: PASSWORD });
  t.is(inside.url, `${service.url}/dashboard/account`);
});

test("a user can register, sign out and sign in by forms", async (t) => {
  const username = newName();
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/register`);
  const inside = await browser.press(page, "Create account", { username, password: PASSWORD });
  t.is(inside.url.startsWith(`${service.url}/dashboard`), true, inside.url);
  t.is(inside.status, 200);
  const out = await browser.press(inside, "Sign out");
  t.is(out.url, `${service.url}/auth/login`);
  t.true((await browser.open(`${service.url}/dashboard`)).url.includes("/auth/login"));
  const again = await browser.signIn(out, { id: "", username, password: PASSWORD });
  t.is(again.status, 200);
  const taken = await new TestBrowser(service.url).open(`${service.url}/auth/register`);
  const refused = await new TestBrowser(service.url).press(taken, "Create account", {
    username,
    password: PASSWORD,
  });
  t.is(refused.status, 409);
  t.regex(refused.text, /This username is taken/);
});

test("the sign-in page says what to do about a forgotten password", async (t) => {
  const page = await new TestBrowser(service.url).open(`${service.url}/auth/login`);
  t.regex(
    page.text,
    /Forgot your password\? Ask an organization owner or your administrator for a reset link/,
  );
});
