import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { createPasswords } from "../../../server/credentials/passwords.ts";
import {
  authorizeUrl,
  codeFor,
  createApp,
  isAcceptedByApi,
  openConsent,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
  sendForm,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
// The service can't disable a user yet, so the tests change the rows directly.
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});

const REVOCATIONS: Record<string, (userId: string, organizationId: string) => Promise<unknown>> = {
  "is disabled": (id) => knex("users").where({ id }).update({ disabled_at: Date.now() }),
  "leaves the organization": (user_id, organization_id) =>
    knex("memberships").where({ user_id, organization_id }).delete(),
};

for (const [what, revokeAccess] of Object.entries(REVOCATIONS)) {
  test(`when a user ${what}, every token they authorized is rejected`, async (t) => {
    const { app, own, user } = await createApp(service);
    const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
    const code = await codeFor(service, app, user);
    await revokeAccess(user.id, own.id);
    t.false(await isAcceptedByApi(service, accessToken));
    t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
    t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
    for (const token of [accessToken, refreshToken]) {
      t.deepEqual((await postAsClient(service, "introspect", app, { token })).body, { active: false });
    }
    t.is((await postAsClient(service, "token", app, { grant_type: "client_credentials" })).status, 200);
  });

  test(`a user who ${what} while the consent page is open can't approve the request`, async (t) => {
    const { app, own, user } = await createApp(service);
    const browser = new TestBrowser(service.url);
    const page = await openConsent(browser, user, authorizeUrl(service, app));
    await revokeAccess(user.id, own.id);
    const answer = await sendForm(browser, page, { decision: "allow", organization_id: own.id });
    const location = answer.headers.get("location");
    const last = location ? await browser.open(location) : undefined;
    t.false(last?.url.includes("code=") ?? false);
  });
}

test("a disabled user can't sign in and gets the same error as for a wrong password", async (t) => {
  const { app, own, user } = await createApp(service);
  const other = await service.createUser([own.id]);
  await knex("users").where({ id: user.id }).update({ disabled_at: Date.now() });
  const url = authorizeUrl(service, app);
  const alerts: (string | undefined)[] = [];
  for (const credentials of [user, { ...other, password: "wrong" }, { ...other, username: "unknown" }]) {
    const browser = new TestBrowser(service.url);
    const page = await browser.signIn(await browser.open(url), credentials);
    t.is(page.status, 400);
    alerts.push(page.html.querySelector("[role=alert]")?.text);
  }
  t.is(new Set(alerts).size, 1);
  t.truthy(alerts[0]);
});

const INVALID_USERNAMES: Record<string, (name: string) => string> = {
  "a NUL in the username": (name) => `${name}\u0000`,
  "only a NUL as the username": () => "\u0000",
  "a line break in the username": (name) => `${name}\n`,
  "a lone surrogate in the username": (name) => `${name}\ud800`,
  "a username of 10 KB": (name) => name.repeat(1000),
  "an empty username": () => "",
};

for (const [what, mutate] of Object.entries(INVALID_USERNAMES)) {
  test(`a sign-in with ${what} fails like one with a wrong password`, async (t) => {
    const { app, user } = await createApp(service);
    const browser = new TestBrowser(service.url);
    const page = await browser.open(authorizeUrl(service, app));
    const answer = await browser.signIn(page, { ...user, username: mutate(user.username) });
    t.is(answer.status, 400);
    t.truthy(answer.html.querySelector("[role=alert]"));
    t.truthy((await browser.signIn(answer, user)).html.querySelector("[name=csrf]"));
  });
}

test("a disabled user's session opens no consent page", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  await openConsent(browser, user, authorizeUrl(service, app));
  await knex("users").where({ id: user.id }).update({ disabled_at: Date.now() });
  const page = await browser.open(authorizeUrl(service, app));
  t.is(page.html.querySelectorAll("button").filter((button) => button.text.trim() === "Allow").length, 0);
  const silent = await browser.open(authorizeUrl(service, app, { prompt: "none" }));
  t.is(new URL(silent.url).searchParams.get("code"), null);
});

test("a password reset revokes the user's authorized apps and sessions", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
  const own = await service.token(app);
  const { accounts } = service.storage;
  const link = await accounts.createResetToken(user.id, 60_000);
  t.true(await accounts.resetPassword(link, await createPasswords().hash("another fine password")));
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, own));
  const page = await browser.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"));
});
