import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { openConsent } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { cookieOf } from "../../harness/clients/visits.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import { atOnce } from "../../harness/database/storage.ts";
import type { TestUser } from "../../harness/service.ts";

export const databases = "all";

const { service, knex } = await startWithStorage();
const { knownDevices, accounts, notices } = service.storage;

const devicesOf = ({ id }: { id: string }) => knex("known_devices").where({ user_id: id });

const signIn = async (browser: TestBrowser, user: TestUser) =>
  browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), user);
const signedIn = async (user: TestUser) => (await browserOf(service, user)).browser;

const deviceIn = (browser: TestBrowser) => cookieOf(service, browser, "device");
const tokenIn = async (browser: TestBrowser) => (await deviceIn(browser))?.value ?? "";
const deviceOf = (name: string) => ({ token: name.padStart(43, "d"), description: "Test" });

test("a sign-in from a new browser remembers it, under the hash of a random cookie that scripts can't read", async (t) => {
  const user = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  t.is((await signIn(browser, { ...user, password: "wrong" })).status, 400);
  t.is(await deviceIn(browser), undefined, "a wrong password remembers nothing");
  await signIn(browser, user);
  const cookie = await deviceIn(browser);
  t.regex(cookie?.value ?? "", /^[\w-]{43}$/);
  t.true(cookie?.httpOnly);
  t.is(cookie?.sameSite, "lax");
  t.true((cookie?.expiryTime() ?? 0) > Date.now() + 179 * DAY_MS);
  const [device, ...others] = await devicesOf(user);
  t.is(others.length, 0);
  t.false(JSON.stringify(device).includes(cookie?.value ?? ""));
});

test("a browser keeps its cookie when users sign out and other users sign in", async (t) => {
  const [ada, bob] = [await service.createUser([]), await service.createUser([])];
  const browser = await signedIn(ada);
  const token = await tokenIn(browser);
  await browser.jar.removeAllCookies();
  await browser.jar.setCookie(`device=${token}`, service.url);
  await signIn(browser, bob);
  t.is(await tokenIn(browser), token);
  t.is((await devicesOf(ada)).length, 1);
  t.is((await devicesOf(bob)).length, 1);
  t.true(await knownDevices.attempt(ada.id, token));
  const stranger = await service.createUser([]);
  t.false(await knownDevices.attempt(stranger.id, token), "known for its users only");
});

test("a program is one device per network, and a malformed cookie is replaced and never identifies a device", async (t) => {
  const user = await service.createUser([]);
  const headers = { "user-agent": "curl/8.14" };
  for (let times = 0; times < 3; times++) {
    const reply = await apiAt(service.url).send("POST", "/auth/login", { json: user, headers });
    t.deepEqual(reply.headers.getSetCookie(), []);
  }
  const [program, ...others] = await devicesOf(user);
  t.is(program?.description, "curl");
  t.is(others.length, 0, "a program is one device per network");
  const [notice, ...further] = await notices.list(user.id);
  t.like(notice, { kind: "new_device", data: { browser: "curl" } });
  t.regex(notice?.data.address ?? "", /^(127\.0\.0\.1|::1)$/);
  t.deepEqual(further, [], "the device is known from then on");
  for (const value of ["curl 127.0.0", "x", "y".repeat(4000), "%00"]) {
    const browser = new TestBrowser(service.url);
    await browser.jar.setCookie(`device=${encodeURIComponent(value)}`, service.url);
    await signIn(browser, user);
    t.regex(await tokenIn(browser), /^[\w-]{43}$/);
  }
  t.is((await devicesOf(user)).length, 5);
});

test("registering and signing in to an app remember the browser, and registering leaves no notice", async (t) => {
  const { app, user } = await createApp(service);
  const atApp = new TestBrowser(service.url);
  await openConsent(atApp, user, authorizeUrl(service, app));
  t.is((await devicesOf(user)).length, 1);
  t.truthy(await deviceIn(atApp));

  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/register`);
  const fields = { username: "newcomer", password: "a password of some length" };
  await browser.press(page, "Create account", fields);
  const { id = "" } = (await accounts.findByUsername("newcomer")) ?? {};
  t.is((await devicesOf({ id })).length, 1);
  t.truthy(await deviceIn(browser));
  const json = { ...fields, username: "silent-one" };
  await apiAt(service.url).send("POST", "/auth/register", { json });
  for (const account of [{ id }, await accounts.findByUsername("silent-one")])
    t.deepEqual(await notices.list(account?.id ?? ""), []);
});

test("concurrent sign-ins from one device remember it once, and leave one notice of it", async (t) => {
  const user = await service.createUser([]);
  const remember = () => knownDevices.remember(user.id, deviceOf("x"), "192.0.2.1");
  t.is((await atOnce(10, remember)).filter(Boolean).length, 1);
  t.is((await devicesOf(user)).length, 1);
  const [notice, ...others] = await notices.list(user.id);
  t.like(notice, { kind: "new_device", data: { browser: "Test", address: "192.0.2.1" } });
  t.deepEqual(others, []);
});

test("a device is unknown after ten attempts that fail, also concurrent ones, until a sign-in", async (t) => {
  const { id } = await service.createUser([]);
  const device = deviceOf("z");
  await knownDevices.remember(id, device);
  const attempts = await atOnce(30, () => knownDevices.attempt(id, device.token));
  t.is(attempts.filter(Boolean).length, 10);
  t.false(await knownDevices.remember(id, device));
  t.true(await knownDevices.attempt(id, device.token));
});

test("a user has at most twenty known devices, the ones used last", async (t) => {
  const user = await service.createUser([]);
  for (let number = 0; number < 20; number++) {
    advanceClock(1);
    await knownDevices.remember(user.id, deviceOf(`${number}`));
  }
  advanceClock(1);
  await knownDevices.remember(user.id, deviceOf("0"));
  t.true(await knownDevices.remember(user.id, deviceOf("20")));
  t.is((await devicesOf(user)).length, 20);
  t.true(await knownDevices.attempt(user.id, deviceOf("0").token));
  t.false(await knownDevices.attempt(user.id, deviceOf("1").token));
});

test("a new password makes all devices unknown but the one that set it", async (t) => {
  const user = await service.createUser([]);
  const [here, there] = [await signedIn(user), await signedIn(user)];
  const page = await here.open(`${service.url}/dashboard/account`);
  const changed = { current_password: user.password, new_password: "another password of some length" };
  await here.press(page, "Change password", changed);
  t.true(await knownDevices.attempt(user.id, await tokenIn(here)));
  t.false(await knownDevices.attempt(user.id, await tokenIn(there)));

  const link = await accounts.createResetToken(user.id, 60_000);
  await accounts.resetPassword(link, "a hash");
  t.false(await knownDevices.attempt(user.id, await tokenIn(here)));
});

test.serial("a device is unknown half a year after its last sign-in, and then purged", async (t) => {
  const user = await service.createUser([]);
  const device = deviceOf("p");
  await knownDevices.remember(user.id, device);
  advanceClock(181 * DAY_MS);
  t.false(await knownDevices.attempt(user.id, device.token));
  await purgeExpired(service.storage);
  t.is((await devicesOf(user)).length, 0);
});
