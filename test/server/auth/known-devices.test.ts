import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { authorizeUrl, createApp, openConsent } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const databases = "all";

const { url, encryptionKey, database, first: storage, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
});
const { knex } = database;
test.after.always(async () => {
  await service.close();
  await close();
});

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const DAY_MS = 24 * 3600 * 1000;

const devicesOf = ({ id }: { id: string }) => knex("known_devices").where({ user_id: id });

async function signIn(browser: TestBrowser, { username, password }: TestUser) {
  const page = await browser.open(`${service.url}/auth/login`, { headers: { "user-agent": FIREFOX } });
  const body = new URLSearchParams({ username, password });
  const headers = { origin: service.url, "user-agent": FIREFOX };
  return browser.open(page.url, { method: "POST", body, headers });
}

async function cookieOf(browser: TestBrowser) {
  const cookies = await browser.jar.getCookies(service.url);
  return cookies.find(({ key }) => key === "device");
}

test("a sign-in remembers the browser, under the hash of a random cookie that scripts can't read", async (t) => {
  const user = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  await signIn(browser, user);
  const cookie = await cookieOf(browser);
  t.regex(cookie?.value ?? "", /^[\w-]{43}$/);
  t.true(cookie?.httpOnly);
  t.is(cookie?.sameSite, "lax");
  t.true(
    Number(cookie?.maxAge ?? 0) * 1000 >= 179 * DAY_MS ||
      (cookie?.expiryTime() ?? 0) > Date.now() + 179 * DAY_MS,
  );
  const [device, ...others] = await devicesOf(user);
  t.is(others.length, 0);
  t.is(device?.description, "Firefox on Linux");
  t.false(JSON.stringify(device).includes(cookie?.value ?? ""));
});

test("a browser keeps its cookie when users sign out and other users sign in", async (t) => {
  const [ada, bob] = [await service.createUser([]), await service.createUser([])];
  const browser = new TestBrowser(service.url);
  await signIn(browser, ada);
  const { value } = (await cookieOf(browser)) ?? {};
  await browser.jar.removeAllCookies();
  await browser.jar.setCookie(`device=${value}`, service.url);
  await signIn(browser, bob);
  t.is((await cookieOf(browser))?.value, value);
  t.is((await devicesOf(ada)).length, 1);
  t.is((await devicesOf(bob)).length, 1);
  t.true(await storage.knownDevices.attempt(ada.id, String(value)));
  const stranger = await service.createUser([]);
  t.false(await storage.knownDevices.attempt(stranger.id, String(value)), "known for its users only");
});

test("a malformed cookie is replaced, and never identifies a device", async (t) => {
  const user = await service.createUser([]);
  await apiAt(service.url).send("POST", "/auth/login", {
    json: { username: user.username, password: user.password },
    headers: { "user-agent": "curl/8.14" },
  });
  const [program] = await devicesOf(user);
  t.is(program?.description, "curl");
  for (const value of ["curl 127.0.0", "x", "y".repeat(4000), "%00"]) {
    const browser = new TestBrowser(service.url);
    await browser.jar.setCookie(`device=${encodeURIComponent(value)}`, service.url);
    await signIn(browser, user);
    t.regex((await cookieOf(browser))?.value ?? "", /^[\w-]{43}$/);
  }
  t.is((await devicesOf(user)).length, 5);
});

test("a program without cookies is one device per network", async (t) => {
  const { id, username, password } = await service.createUser([]);
  for (let times = 0; times < 3; times++) {
    const { headers } = await apiAt(service.url).send("POST", "/auth/login", {
      json: { username, password },
    });
    t.deepEqual(headers.getSetCookie(), []);
  }
  t.is((await devicesOf({ id })).length, 1);
});

test("registering and signing in to an app remember the browser", async (t) => {
  const { app, user } = await createApp(service);
  const atApp = new TestBrowser(service.url);
  await openConsent(atApp, user, authorizeUrl(service, app));
  t.is((await devicesOf(user)).length, 1);
  t.truthy(await cookieOf(atApp));

  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/register`);
  await browser.press(page, "Create account", {
    username: "newcomer",
    password: "a password of some length",
  });
  const account = await storage.accounts.findByUsername("newcomer");
  t.is((await devicesOf({ id: account?.id ?? "" })).length, 1);
  t.truthy(await cookieOf(browser));
});

test("a wrong password remembers nothing", async (t) => {
  const user = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  t.is((await signIn(browser, { ...user, password: "wrong" })).status, 400);
  t.is(await cookieOf(browser), undefined);
  t.is((await devicesOf(user)).length, 0);
});

test("a sign-in from a new device leaves a notice, one from a known device or after registering doesn't", async (t) => {
  const user = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  for (let times = 0; times < 3; times++) await signIn(browser, user);
  const [notice, ...others] = await storage.notices.list(user.id);
  t.is(notice?.kind, "new_device");
  t.is(notice?.data.browser, "Firefox on Linux");
  t.regex(notice?.data.address ?? "", /^(127\.0\.0\.1|::1)$/);
  t.deepEqual(others, []);
  const registration = { username: "silent-one", password: "a password of some length" };
  await apiAt(service.url).send("POST", "/auth/register", { json: registration });
  const account = await storage.accounts.findByUsername("silent-one");
  t.deepEqual(await storage.notices.list(account?.id ?? ""), []);
});

test("concurrent sign-ins from one device remember it once, and report it as new once", async (t) => {
  const user = await service.createUser([]);
  const token = "x".repeat(43);
  const news = await atOnce(10, () =>
    storage.knownDevices.remember(user.id, { token, description: "Test" }, "192.0.2.1"),
  );
  t.is(news.filter(Boolean).length, 1);
  t.is((await devicesOf(user)).length, 1);
  t.is((await storage.notices.list(user.id)).length, 1);
});

test("a device is unknown after ten attempts that fail, also concurrent ones, until a sign-in", async (t) => {
  const user = await service.createUser([]);
  const device = { token: "z".repeat(43), description: "Test" };
  await storage.knownDevices.remember(user.id, device);
  const attempts = await atOnce(30, () => storage.knownDevices.attempt(user.id, device.token));
  t.is(attempts.filter(Boolean).length, 10);
  t.false(await storage.knownDevices.remember(user.id, device));
  t.true(await storage.knownDevices.attempt(user.id, device.token));
});

test("a user has at most twenty known devices, the ones used last", async (t) => {
  const user = await service.createUser([]);
  const device = (number: number) => ({ token: String(number).padStart(43, "d"), description: "Test" });
  for (let number = 0; number < 20; number++) {
    advanceClock(1);
    await storage.knownDevices.remember(user.id, device(number));
  }
  advanceClock(1);
  await storage.knownDevices.remember(user.id, device(0));
  t.true(await storage.knownDevices.remember(user.id, device(20)));
  t.is((await devicesOf(user)).length, 20);
  t.true(await storage.knownDevices.attempt(user.id, device(0).token));
  t.false(await storage.knownDevices.attempt(user.id, device(1).token));
});

test("a new password makes all devices unknown but the one that set it", async (t) => {
  const user = await service.createUser([]);
  const [here, there] = [new TestBrowser(service.url), new TestBrowser(service.url)];
  for (const browser of [here, there]) await signIn(browser, user);
  const page = await here.open(`${service.url}/dashboard/account`);
  const changed = { current_password: user.password, new_password: "another password of some length" };
  await here.press(page, "Change password", changed);
  const token = async (browser: TestBrowser) => String((await cookieOf(browser))?.value);
  t.true(await storage.knownDevices.attempt(user.id, await token(here)));
  t.false(await storage.knownDevices.attempt(user.id, await token(there)));

  const link = await storage.accounts.createResetToken(user.id, 60_000);
  await storage.accounts.resetPassword(link, "a hash");
  t.false(await storage.knownDevices.attempt(user.id, await token(here)));
});

test.serial("a device is unknown half a year after its last sign-in, and then purged", async (t) => {
  const user = await service.createUser([]);
  const device = { token: "p".repeat(43), description: "Test" };
  await storage.knownDevices.remember(user.id, device);
  advanceClock(181 * DAY_MS);
  t.false(await storage.knownDevices.attempt(user.id, device.token));
  await purgeExpired(storage);
  t.is((await devicesOf(user)).length, 0);
});
