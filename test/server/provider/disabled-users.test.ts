import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../adapters/database.ts";
import { createPasswords } from "../../server/passwords.ts";
import { createTestDatabase } from "../harness/database.ts";
import {
  ask,
  authorizeUrl,
  codeFor,
  createApp,
  newTokens,
  openConsent,
  opensApi,
  redeemCode,
  refresh,
  sendForm,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
// There is no call yet that disables a person or ends a membership: the rows are changed beside the service.
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});

const ENDINGS: Record<string, (userId: string, organizationId: string) => Promise<unknown>> = {
  "is disabled": (id) => knex("users").where({ id }).update({ disabled_at: Date.now() }),
  "leaves the organization": (user_id, organization_id) =>
    knex("memberships").where({ user_id, organization_id }).delete(),
};

for (const [what, end] of Object.entries(ENDINGS)) {
  test(`sec 60, 72, 82: when a person ${what} nothing that was allowed goes on`, async (t) => {
    const { app, own, user } = await createApp(service);
    const { accessToken, refreshToken } = await newTokens(service, app, user);
    const code = await codeFor(service, app, user);
    await end(user.id, own.id);
    t.false(await opensApi(service, accessToken));
    t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
    t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
    for (const token of [accessToken, refreshToken]) {
      t.deepEqual((await ask(service, "introspect", app, { token })).body, { active: false });
    }
    t.is((await ask(service, "token", app, { grant_type: "client_credentials" })).status, 200);
  });

  test(`a person who ${what} while the consent page is open cannot allow`, async (t) => {
    const { app, own, user } = await createApp(service);
    const person = new Person(service.url);
    const page = await openConsent(person, user, authorizeUrl(service, app));
    await end(user.id, own.id);
    const answer = await sendForm(person, page, { decision: "allow", organization_id: own.id });
    const location = answer.headers.get("location");
    const last = location ? await person.open(location) : undefined;
    t.false(last?.url.includes("code=") ?? false);
  });
}

test("who is disabled cannot sign in, and is told nothing else than a wrong password", async (t) => {
  const { app, own, user } = await createApp(service);
  const other = await service.createUser([own.id]);
  await knex("users").where({ id: user.id }).update({ disabled_at: Date.now() });
  const url = authorizeUrl(service, app);
  const alerts: (string | undefined)[] = [];
  for (const someone of [user, { ...other, password: "wrong" }, { ...other, username: "nobody" }]) {
    const person = new Person(service.url);
    const page = await person.signIn(await person.open(url), someone);
    t.is(page.status, 400);
    alerts.push(page.html.querySelector("[role=alert]")?.text);
  }
  t.is(new Set(alerts).size, 1);
  t.truthy(alerts[0]);
});

const NAMES: Record<string, (name: string) => string> = {
  "a NUL": (name) => `${name}\u0000`,
  "only a NUL": () => "\u0000",
  "a line end": (name) => `${name}\n`,
  "a lone surrogate": (name) => `${name}\ud800`,
  "10 kB": (name) => name.repeat(1000),
  nothing: () => "",
};

for (const [what, mutate] of Object.entries(NAMES)) {
  test(`sec 51: a sign-in with a name of ${what} is refused like a wrong password`, async (t) => {
    const { app, user } = await createApp(service);
    const person = new Person(service.url);
    const page = await person.open(authorizeUrl(service, app));
    const answer = await person.signIn(page, { ...user, username: mutate(user.username) });
    t.is(answer.status, 400);
    t.truthy(answer.html.querySelector("[role=alert]"));
    t.truthy((await person.signIn(answer, user)).html.querySelector("[name=csrf]"));
  });
}

test("the session of a disabled person opens no consent page", async (t) => {
  const { app, user } = await createApp(service);
  const person = new Person(service.url);
  await openConsent(person, user, authorizeUrl(service, app));
  await knex("users").where({ id: user.id }).update({ disabled_at: Date.now() });
  const page = await person.open(authorizeUrl(service, app));
  t.is(page.html.querySelectorAll("button").filter((button) => button.text.trim() === "Allow").length, 0);
  const silent = await person.open(authorizeUrl(service, app, { prompt: "none" }));
  t.is(new URL(silent.url).searchParams.get("code"), null);
});

test("sec 72: a new password ends what was allowed, and the session", async (t) => {
  const { app, user } = await createApp(service);
  const person = new Person(service.url);
  const { accessToken, refreshToken } = await newTokens(service, app, user, { person });
  const own = await service.token(app);
  const { accounts } = service.storage;
  const link = await accounts.createResetToken(user.id, 60_000);
  t.true(await accounts.resetPassword(link, await createPasswords().hash("another fine password")));
  t.false(await opensApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.true(await opensApi(service, own));
  const page = await person.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"));
});
