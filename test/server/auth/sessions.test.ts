import test from "ava";
import { apiAt, isMissing } from "../../harness/clients/api.ts";
import { browserOf, createColleague, firstPartyToken } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { authorizeUrl, createApp, isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
test.after.always(() => service.close());

const DAY_MS = 24 * 3600_000;
const ACCOUNT = `${service.url}/dashboard/account`;
const SESSIONS = "/dashboard/account/sessions";

type Listed = {
  id: string;
  means: string;
  address: string;
  user_agent: string | null;
  created_at: string;
  last_seen_at: string | null;
  current: boolean;
};

async function isIn(browser: TestBrowser): Promise<boolean> {
  return !(await browser.open(ACCOUNT)).html.querySelector("form[action='/auth/login']");
}

async function listOf(browser: TestBrowser): Promise<Listed[]> {
  const { text } = await browser.open(service.url + SESSIONS, { headers: { accept: "application/json" } });
  return JSON.parse(text).data;
}

/** Returns another browser with a copy of the cookies. */
async function thiefOf(browser: TestBrowser): Promise<TestBrowser> {
  const thief = new TestBrowser(service.url);
  for (const cookie of await browser.jar.getCookies(service.url)) {
    await thief.jar.setCookie(`${cookie.key}=${cookie.value}; path=/`, service.url);
  }
  return thief;
}

const idOf = async (browser: TestBrowser) =>
  (await browser.jar.getCookies(service.url)).find(({ key }) => key === "session")?.value;

test("signing in never uses a session that was planted in the browser", async (t) => {
  const [user, attacker] = [await service.createUser([]), await service.createUser([])];
  const plants: Record<string, TestBrowser> = {
    "made up": new TestBrowser(service.url),
    "of the attacker": (await browserOf(service, attacker)).browser,
  };
  await plants["made up"]?.jar.setCookie("session=chosen-by-an-attacker", service.url);
  for (const [what, planter] of Object.entries(plants)) {
    t.truthy(await idOf(planter), what);
    const victim = await thiefOf(planter);
    const page = await victim.signIn(await victim.open(`${service.url}/auth/login?again=1`), user);
    t.is(page.status, 200, what);
    t.not(await idOf(victim), await idOf(planter), what);
    t.true((await victim.open(ACCOUNT)).text.includes(user.username));
    t.false((await planter.open(ACCOUNT)).text.includes(user.username), what);
  }
});

test("signing in again gives the session a new ID and invalidates the old one", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const thief = await thiefOf(browser);
  t.true(await isIn(thief));
  const page = await browser.open(`${service.url}/auth/login?again=1`);
  await browser.signIn(page, user);
  t.not(await idOf(browser), await idOf(thief));
  t.false(await isIn(thief));
  t.true(await isIn(browser));
});

test("changing the password gives the session a new ID", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const thief = await thiefOf(browser);
  await browser.press(await browser.open(ACCOUNT), "Change password", {
    current_password: user.password,
    new_password: "an entirely new one",
  });
  t.true(await isIn(browser));
  t.false(await isIn(thief));
});

test("signing out ends the session on the server and deletes the cookie", async (t) => {
  const { browser, page } = await browserOf(service, await service.createUser([]));
  const thief = await thiefOf(browser);
  const out = await browser.press(page, "Sign out");
  t.is(out.url, `${service.url}/auth/login`);
  t.is(await idOf(browser), undefined);
  t.false(await isIn(thief));
});

test("a pending request doesn't restore a session after signing out", async (t) => {
  const { app } = await createApp(service);
  for (let round = 0; round < 5; round++) {
    const { browser, page } = await browserOf(service, await service.createUser([]));
    const thief = await thiefOf(browser);
    const readers = Array.from({ length: 16 }, (_, index) =>
      thief.open(index % 2 ? ACCOUNT : authorizeUrl(service, app)),
    );
    await Promise.all([...readers.slice(0, 8), browser.press(page, "Sign out"), ...readers.slice(8)]);
    t.false(await isIn(thief));
    t.falsy((await thief.open(authorizeUrl(service, app))).text.includes("Allow access?"));
  }
});

test("a user sees their sessions, of browsers and programs", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const token = await firstPartyToken(service, user);
  await browser.open(ACCOUNT, { headers: { "user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0" } });
  const other = await browserOf(service, user);
  await other.browser.open(ACCOUNT);
  const listed = await listOf(browser);
  t.deepEqual(listed.map(({ means }) => means).sort(), ["session", "session", "token"]);
  t.is(listed.filter(({ current }) => current).length, 1);
  for (const { address, created_at, last_seen_at, means } of listed) {
    t.regex(address, /127\.0\.0\.1|::1/);
    t.true(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
    t.is(last_seen_at === null, means === "token");
  }
  const { body } = await apiAt(service.url, token).send<{ data: Listed[] }>("GET", SESSIONS);
  t.deepEqual(
    body.data.filter(({ current }) => current).map(({ means }) => means),
    ["token"],
  );
  t.regex((await browser.open(ACCOUNT)).text, /API client/);
});

/** Two ways to end a session of the user. */
const ENDINGS: Record<string, (user: TestUser, id: string) => Promise<number>> = {
  async JSON(user, id) {
    const token = await firstPartyToken(service, user);
    return (await apiAt(service.url, token).send("DELETE", `${SESSIONS}/${id}`)).status;
  },
  async "a form"(user, id) {
    const { browser } = await browserOf(service, user);
    const page = await browser.open(ACCOUNT);
    const form = page.html
      .querySelectorAll("form")
      .find(({ attributes }) => attributes.action === `${SESSIONS}/${id}/delete`);
    return (await browser.submit(page, {}, form ?? null)).status === 200 ? 204 : 500;
  },
};

for (const [how, end] of Object.entries(ENDINGS)) {
  test(`any session can be ended by ${how}, and stays ended`, async (t) => {
    const user = await service.createUser([]);
    const { browser } = await browserOf(service, user);
    const own = (await listOf(browser))[0]?.id as string;
    const token = await firstPartyToken(service, user);
    const program = (await listOf(browser)).find(({ means }) => means === "token")?.id as string;
    t.is(await end(user, program), 204);
    t.is((await apiAt(service.url, token).send("GET", "/dashboard/me")).status, 401);
    t.true(await isIn(browser));
    t.is(await end(user, own), 204);
    t.false(await isIn(browser));
    t.false(await isIn(browser));
  });
}

test("all other sessions can be ended together, by JSON and by a form, and the current one stays valid", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const other = await browserOf(service, user);
  const token = await firstPartyToken(service, user);
  const page = await browser.press(await browser.open(ACCOUNT), "Sign out everywhere else");
  t.regex(page.text, /Signed out everywhere else/);
  t.false(await isIn(other.browser));
  t.is((await apiAt(service.url, token).send("GET", "/dashboard/me")).status, 401);
  t.deepEqual(
    (await listOf(browser)).map(({ current }) => current),
    [true],
  );
  const program = apiAt(service.url, await firstPartyToken(service, user));
  t.is((await program.send("DELETE", SESSIONS)).status, 204);
  t.is((await program.send("GET", "/dashboard/me")).status, 200);
  t.false(await isIn(browser));
});

test("ending all other sessions can revoke the access of all apps as well, by JSON and by a form", async (t) => {
  for (const how of ["JSON", "a form"]) {
    const { app, own } = await createApp(service);
    const user = await service.createUser([own.id]);
    const { browser } = await browserOf(service, user);
    const [kept, revoked] = [await tokensFor(service, app, user), await tokensFor(service, app, user)];
    await browser.press(await browser.open(ACCOUNT), "Sign out everywhere else");
    t.true(await isAcceptedByApi(service, kept.access_token), "apps keep their access unless asked");
    if (how === "JSON") {
      const program = apiAt(service.url, await firstPartyToken(service, user));
      t.is((await program.send("DELETE", SESSIONS, { json: { apps: true } })).status, 204);
    } else {
      await firstPartyToken(service, user);
      const page = await browser.press(await browser.open(ACCOUNT), "Sign out everywhere else", {
        apps: "true",
      });
      t.regex(page.text, /revoked the access of all apps/);
    }
    t.false(await isAcceptedByApi(service, revoked.access_token), how);
  }
});

test("the list of sessions names how each was started", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  await firstPartyToken(service, user);
  const listed = (await listOf(browser)) as (Listed & { methods: string[] })[];
  t.deepEqual(
    listed.map(({ methods }) => methods),
    [["password"], ["password"]],
  );
});

test("a session of another user, or an unknown one, can't be ended", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  const [{ id = "" } = {}] = await listOf(browser);
  const stranger = await createColleague(service, undefined);
  for (const wrong of [id, "unknown", "%00", "x".repeat(300)]) {
    isMissing(t, await stranger.api.send("DELETE", `${SESSIONS}/${wrong}`));
  }
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

test.serial("a session that is used every day expires after exactly 30 days", async (t) => {
  const { app } = await createApp(service);
  const { browser } = await browserOf(service, await service.createUser([]));
  for (let day = 0; day < 29; day++) {
    advanceClock(DAY_MS);
    t.true(await isIn(browser), `${day}`);
  }
  advanceClock(DAY_MS - 3000);
  for (let count = 0; count < 10; count++) {
    await browser.open(authorizeUrl(service, app));
    advanceClock(500);
  }
  t.false(await isIn(browser));
});

test.serial("signing in again restarts the 30 days", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  for (let round = 0; round < 2; round++) {
    for (let day = 0; day < 4; day++) {
      advanceClock(6 * DAY_MS);
      t.true(await isIn(browser), `${round} ${day}`);
    }
    await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), user);
  }
});
