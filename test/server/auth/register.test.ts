import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database.ts";
import { OPERATOR } from "../../../resources/events.ts";
import { apiAt, isProblem } from "../../harness/api.ts";
import { createTestDatabase } from "../../harness/database.ts";
import { firstPartyAt, isTokenAnswer, newName, PASSWORD } from "../../harness/first-party.ts";
import { Person } from "../../harness/person.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
// No call disables a person yet: the row is changed beside the service.
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});
const api = apiAt(service.url);

const { post, me, register } = firstPartyAt(service.url);

test("registering makes a person who owns an organization on the free plan, and signs in", async (t) => {
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

test("without a name the organization is the person's", async (t) => {
  const { user, organization } = await register();
  t.is(organization.name, `${user.username}'s organization`);
});

test("a username that is taken is refused in every spelling, and leaves no organization", async (t) => {
  const { user } = await register();
  const organization_name = `Unmade ${user.id}`;
  for (const username of [user.username, user.username.toUpperCase()]) {
    const reply = await post("/auth/register", { username, password: PASSWORD, organization_name });
    isProblem(t, reply, { status: 409, code: "username_taken", fields: ["username"] });
  }
  t.false((await service.storage.organizations.list()).some(({ name }) => name === organization_name));
});

test("of ten registrations of one name at once, one succeeds", async (t) => {
  const fields = { username: newName(), password: PASSWORD };
  const replies = await Promise.all(Array.from({ length: 10 }, () => post("/auth/register", fields)));
  const statuses = replies.map(({ status }) => status).sort();
  t.deepEqual(statuses, [201, ...Array.from({ length: 9 }, () => 409)]);
});

const REFUSED: [what: string, fields: object, names: string[]][] = [
  ["nothing", { username: undefined, password: undefined }, ["username", "password"]],
  ["a short username", { username: "ab" }, ["username"]],
  ["a username with a line end", { username: "somebody\n" }, ["username"]],
  ["a username of letters that stand for many", { username: "\ufdfa".repeat(4) }, ["username"]],
  ["a username that is too long when compared", { username: "\ufb00".repeat(40) }, ["username"]],
  ["a username that is too long in lower case", { username: "\u0130".repeat(40) }, ["username"]],
  ["the name of somebody else in the audit log", { username: "Operator" }, ["username"]],
  ["a username that is no text", { username: 7 }, ["username"]],
  ["a short password", { password: "seven77" }, ["password"]],
  ["a password of 129 characters", { password: "a".repeat(129) }, ["password"]],
  ["one of the most common passwords", { password: "password123" }, ["password"]],
  ["the username as password", { username: "some.body", password: "some.body" }, ["password"]],
  ["a name of 101 characters", { organization_name: "a".repeat(101) }, ["organization_name"]],
  ["a name with a NUL", { organization_name: "a\u0000b" }, ["organization_name"]],
];

for (const [what, fields, names] of REFUSED) {
  test(`sec 107, 108: a registration with ${what} is refused, as JSON and as a form`, async (t) => {
    const input = { username: newName(), password: PASSWORD, ...fields };
    const reply = await post("/auth/register", input);
    const code = names.length === 1 ? `invalid_${names[0]}` : "invalid_request";
    isProblem(t, reply, { status: 422, code, fields: names });

    const person = new Person(service.url);
    const page = await person.open(`${service.url}/auth/register`);
    const texts = Object.entries(input).map(([name, value]) => [name, String(value ?? "")]);
    const answer = await person.press(page, "Create the account", Object.fromEntries(texts));
    if (typeof (fields as { username?: unknown }).username === "number")
      return t.pass("a form has texts only");
    t.is(answer.status, 422);
    t.truthy(answer.html.querySelector("[role=alert]"));
    t.is(answer.html.querySelector("#password")?.attributes.value, undefined);
  });
}

for (const [what, send] of Object.entries({
  "what is no JSON": () =>
    api.send("POST", "/auth/register", { body: "{", headers: { "content-type": "application/json" } }),
  "a list": () => api.send("POST", "/auth/register", { json: [] }),
})) {
  test(`${what} is refused`, async (t) => isProblem(t, await send(), { status: 400, code: "invalid_json" }));
}

test("another content type, and a body that is too large, are refused", async (t) => {
  const headers = { "content-type": "text/plain" };
  const plain = await api.send("POST", "/auth/login", { body: '{"username":"a"}', headers });
  isProblem(t, plain, { status: 415, code: "unsupported_media_type" });
  const large = await api.send("POST", "/auth/login", { json: { username: "a".repeat(70_000) } });
  isProblem(t, large, { status: 413, code: "body_too_large" });
});

test("a password yields tokens, sent as JSON or as a form", async (t) => {
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

test("sec 110: a wrong password, an unknown name, and people who cannot sign in by one are one answer", async (t) => {
  const { user } = await register();
  const { accounts } = service.storage;
  const external = await accounts.create(newName(), null, OPERATOR);
  const { user: disabled } = await register();
  await knex("users").where({ id: disabled.id }).update({ disabled_at: Date.now() });
  const replies = [];
  for (const fields of [
    { username: user.username, password: "wrong password" },
    { username: "nobody at all", password: "wrong password" },
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

test("who was disabled is out at once, by token and by session, and cannot come in again", async (t) => {
  const { user, access_token, refresh_token } = await register();
  const person = new Person(service.url);
  const page = await person.signIn(
    await person.open(`${service.url}/auth/login?return_to=/dashboard/account`),
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
  t.true((await person.open(`${service.url}/dashboard/account`)).url.includes("/auth/login"));
});

test("whoever is not signed in gets a 401, in a browser the sign-in page, and is brought back", async (t) => {
  isProblem(t, await api.send("GET", "/dashboard/me"), { status: 401, code: "sign_in_required" });
  isProblem(t, await api.send("POST", "/auth/logout"), { status: 401, code: "sign_in_required" });
  const { user } = await register();
  const person = new Person(service.url);
  const page = await person.open(`${service.url}/dashboard/account`);
  t.is(page.html.querySelector("h1")?.text, "Sign in");
  const inside = await person.signIn(page, { ...user, password: PASSWORD });
  t.is(inside.url, `${service.url}/dashboard/account`);
});

test("people register, sign out and sign in by forms", async (t) => {
  const username = newName();
  const person = new Person(service.url);
  const page = await person.open(`${service.url}/auth/register`);
  const inside = await person.press(page, "Create the account", { username, password: PASSWORD });
  t.is(inside.url.startsWith(`${service.url}/dashboard`), true, inside.url);
  t.is(inside.status, 200);
  const out = await person.press(inside, "Sign out");
  t.is(out.url, `${service.url}/auth/login`);
  t.true((await person.open(`${service.url}/dashboard`)).url.includes("/auth/login"));
  const again = await person.signIn(out, { id: "", username, password: PASSWORD });
  t.is(again.status, 200);
  const taken = await new Person(service.url).open(`${service.url}/auth/register`);
  const refused = await new Person(service.url).press(taken, "Create the account", {
    username,
    password: PASSWORD,
  });
  t.is(refused.status, 409);
  t.regex(refused.text, /This username is taken/);
});

test("the sign-in page tells who has forgotten the password what to do", async (t) => {
  const page = await new Person(service.url).open(`${service.url}/auth/login`);
  t.regex(page.text, /Forgot the password\? An owner of your organization can make a link/);
});
