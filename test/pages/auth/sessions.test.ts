import test from "ava";
import type { ShownAccount } from "../../../server/operations/account.ts";
import { apiAt, isMissing } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { browserOf, createColleague, firstPartyToken } from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { accountIn, cookieOf, isSignedIn, thiefOf } from "../../harness/clients/visits.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();

const ACCOUNT = `${service.url}/dashboard/account`;
const SESSIONS = "/dashboard/account/sessions";

type Listed = ShownAccount["sessions"][number];

const isIn = (browser: TestBrowser) => isSignedIn(service, browser);
const idOf = async (browser: TestBrowser) => (await cookieOf(service, browser, "session"))?.value;

const listOf = async (browser: TestBrowser) => (await accountIn(service, browser))?.sessions ?? [];

test("signing in never uses a session that was planted in the browser", async (t) => {
  const [user, attacker] = [await service.createUser([]), await service.createUser([])];
  const plants: Record<string, TestBrowser> = {
    "made up": new TestBrowser(service.url),
    "of the attacker": (await browserOf(service, attacker)).browser,
  };
  await plants["made up"]?.jar.setCookie("session=chosen-by-an-attacker", service.url);
  for (const [what, planter] of Object.entries(plants)) {
    t.truthy(await idOf(planter), what);
    const victim = await thiefOf(service, planter);
    const page = await victim.signIn(await victim.open(`${service.url}/auth/login?again=1`), user);
    t.is(page.status, 200, what);
    t.not(await idOf(victim), await idOf(planter), what);
    t.true((await victim.open(ACCOUNT)).text.includes(user.username));
    t.false((await planter.open(ACCOUNT)).text.includes(user.username), what);
  }
});

test("signing in again, changing the password and signing out invalidate the session's ID on the server", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const change = { current_password: user.password, new_password: "an entirely new one" };
  const signOut = async () => browser.press(await browser.open(ACCOUNT), "Sign out");
  for (const renew of [
    async () => browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), user),
    async () => browser.press(await browser.open(ACCOUNT), "Change password", change),
    signOut,
  ]) {
    const thief = await thiefOf(service, browser);
    t.true(await isIn(thief));
    const { url } = await renew();
    t.not(await idOf(browser), await idOf(thief));
    t.false(await isIn(thief));
    t.is(await isIn(browser), renew !== signOut);
    if (renew === signOut) t.is(url, `${service.url}/auth/login`);
  }
  t.is(await idOf(browser), undefined);
});

test("a user sees their sessions, of browsers and programs", async (t) => {
  const { browser, user, token } = await inBoth();
  await browser.open(ACCOUNT, { headers: { "user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0" } });
  const other = await browserOf(service, user);
  await other.browser.open(ACCOUNT);
  const listed = await listOf(browser);
  t.deepEqual(listed.map(({ means }) => means).sort(), ["session", "session", "token"]);
  t.is(listed.filter(({ current }) => current).length, 1);
  for (const { address, created_at, last_seen_at, means, methods } of listed) {
    t.deepEqual(methods, ["password"]);
    t.regex(address ?? "", /127\.0\.0\.1|::1/);
    t.true(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
    t.is(last_seen_at === null, means === "token");
  }
  const { body } = await apiAt(service.url, token).send<{ data: Listed[] }>("GET", SESSIONS);
  const current = body.data.filter((one) => one.current).map(({ means }) => means);
  t.deepEqual(current, ["token"]);
  t.regex((await browser.open(ACCOUNT)).text, /API client/);
});

async function inBoth() {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  return { user, browser, token: await firstPartyToken(service, user) };
}

test("any session can be ended, by JSON and by a form, and stays ended", async (t) => {
  const { browser, user, token } = await inBoth();
  const ids = Object.fromEntries((await listOf(browser)).map(({ means, id }) => [means, id]));
  const api = apiAt(service.url, await firstPartyToken(service, user));
  t.is((await api.send("DELETE", `${SESSIONS}/${ids.token}`)).status, 204);
  t.is((await apiAt(service.url, token).send("GET", "/dashboard/me")).status, 401);
  t.true(await isIn(browser));
  const { browser: other } = await browserOf(service, user);
  const page = await other.open(ACCOUNT);
  const form = page.html.querySelector(`form[action="${SESSIONS}/${ids.session}/delete"]`);
  t.is((await other.submit(page, {}, form)).status, 200);
  t.false(await isIn(browser));
});

test("all other sessions can be ended together, by JSON and by a form, and the access of all apps if asked", async (t) => {
  const { app, own } = await createApp(service);
  const user = await service.createUser([own.id]);
  const { access_token } = await tokensFor(service, app, user);
  const { browser: other } = await browserOf(service, user);
  const program = apiAt(service.url, await firstPartyToken(service, user));
  t.is((await program.send("DELETE", SESSIONS)).status, 204);
  t.is((await program.send("GET", "/dashboard/me")).status, 200);
  t.false(await isIn(other));
  t.true(await isAcceptedByApi(service, access_token), "apps keep their access unless asked");
  const { browser } = await browserOf(service, user);
  await browser.press(await browser.open(ACCOUNT), "Sign out everywhere else");
  t.true(await isAcceptedByApi(service, access_token), "by a form, too");
  await firstPartyToken(service, user); // another session, or there is no button
  const page = await browser.press(await browser.open(ACCOUNT), "Sign out everywhere else", { apps: "true" });
  t.regex(page.text, /Signed out everywhere else, and revoked the access of all apps/);
  t.is((await program.send("GET", "/dashboard/me")).status, 401);
  t.false(await isAcceptedByApi(service, access_token));
  const remaining = await listOf(browser);
  t.deepEqual([remaining.length, remaining[0]?.current], [1, true]);
});

test("a session of another user, or an unknown one, can't be ended", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  const [{ id = "" } = {}] = await listOf(browser);
  const stranger = await createColleague(service, undefined);
  for (const wrong of [id, "unknown", "%00", "x".repeat(300)])
    isMissing(t, await stranger.api.send("DELETE", `${SESSIONS}/${wrong}`));
  t.true(await isIn(browser));
});

// Serial, because each test moves the clock.
test.serial("a session expires after 7 days without use, and using it extends it", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  for (let count = 0; count < 3; count++) {
    advanceClock(7 * DAY_MS - 3600_000);
    t.true(await isIn(browser), `${count}`);
  }
  advanceClock(7 * DAY_MS);
  t.false(await isIn(browser));
});

test.serial("a used session expires after exactly 30 days, which signing in again restarts", async (t) => {
  const { app } = await createApp(service);
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  for (let round = 0; round < 2; round++) {
    for (let week = 0; week < 4; week++) {
      advanceClock(6 * DAY_MS);
      t.true(await isIn(browser), `${round} ${week}`);
    }
    await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), user);
  }
  for (const days of [6, 6, 6, 6, 5]) {
    advanceClock(days * DAY_MS);
    t.true(await isIn(browser));
  }
  advanceClock(DAY_MS - 3000);
  for (let count = 0; count < 10; count++) {
    await browser.open(authorizeUrl(service, app));
    advanceClock(500);
  }
  t.false(await isIn(browser));
});
