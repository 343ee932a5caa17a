import test from "ava";
import type { ShownAccount } from "../../../../server/operations/account.ts";
import { browserOf } from "../../../harness/clients/dashboard.ts";
import { createProtected } from "../../../harness/clients/second-factor.ts";
import { type Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { accountIn, follow, isSignedIn, thiefOf } from "../../../harness/clients/visits.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { freePort } from "../../../harness/program.ts";
import {
  isSignInRefused,
  providerSettings,
  signInExternally,
  signInWith,
  startMockProvider,
  startWithProvider,
} from "../../../harness/providers/identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

const { provider, service } = await startWithProvider();

const ACCOUNT = `${service.url}/dashboard/account`;
let count = 0;
const newSubject = () => `subject-${++count}`;

const arrive = (claims: object) => signInWith(service, provider, claims);

const accountOf = async (browser: TestBrowser) => (await accountIn(service, browser)) as ShownAccount;

test.serial("the first sign-in creates an account without a password, and an organization", async (t) => {
  const sub = newSubject();
  const { browser, page } = await arrive({ sub, preferred_username: "grace" });
  t.is(page.status, 200, page.text);
  t.true(page.url.startsWith(`${service.url}/dashboard`));
  const account = await accountOf(browser);
  t.is(account.user.username, "grace");
  t.false(account.user.has_password);
  t.like(account.identities, [{ issuer: provider.issuer, subject: sub, label: "grace" }]);
  t.like(account.organizations, [{ name: "grace's organization", role: "owner" }]);

  const again = await arrive({ sub, preferred_username: "renamed" });
  t.is((await accountOf(again.browser)).user.id, account.user.id, "recognized even if the name changed");
});

const NAMES: [claims: Record<string, unknown>, username: RegExp][] = [
  [{ email: "ada@example.com" }, /^ada@example\.com$/],
  [{ preferred_username: "!", email: "b@example.com" }, /^b@example\.com$/],
  [{ preferred_username: " Ada Lovelace " }, /^Ada-Lovelace$/],
  [{ preferred_username: "x".repeat(300) }, /^x{50}$/],
  [{ preferred_username: "a\u0000da\u001b" }, /^a-da$/],
  [{}, /^subject-\d+$/],
];

test.serial("a new user is named after the first claim that makes a valid username", async (t) => {
  for (const [claims, username] of NAMES) {
    const { browser } = await arrive({ sub: newSubject(), ...claims });
    t.regex((await accountOf(browser)).user.username, username);
  }
});

test.serial("an identity with the name or e-mail of an existing user gets a new account", async (t) => {
  const username = "victim@example.com";
  const own = await service.storage.accounts.create(username, "no hash", { id: "operator" });
  const claims = { preferred_username: username, email: username, email_verified: true };
  const { browser } = await arrive({ sub: newSubject(), ...claims });
  const { user } = await accountOf(browser);
  t.not(user.id, own?.id);
  t.regex(user.username, /^victim@example\.com-\d{4}$/);
  t.deepEqual(await service.storage.identities.listByUser(own?.id as string), []);
});

test.serial("ten concurrent first sign-ins of one identity lead to one account", async (t) => {
  const sub = newSubject();
  const always = ({ payload }: { payload: Record<string, unknown> }) =>
    void (payload.aud && Object.assign(payload, { sub }));
  provider.service.on("beforeTokenSigning", always);
  const browsers = Array.from({ length: 10 }, () => new TestBrowser(service.url));
  const pages = await Promise.all(browsers.map((browser) => signInExternally(service, provider, browser)));
  provider.service.off("beforeTokenSigning", always);
  t.deepEqual([...new Set(pages.map(({ status }) => status))], [200]);
  const ids = await Promise.all(browsers.map(async (browser) => (await accountOf(browser)).user.id));
  t.is(new Set(ids).size, 1);
});

/** Signs a user in with the password. `link` sends an identity back from the provider, to a browser. */
async function linking() {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const page = await browser.open(ACCOUNT);
  async function link(sub: string, target = browser): Promise<Page> {
    const asked = await browser.press(page, "Link Example ID");
    const url = asked.html.querySelector("a.button")?.attributes.href ?? "";
    provider.say(({ payload }) => Object.assign(payload, { sub }));
    return target.open(await provider.answer({ ...asked, url }));
  }
  return { user, browser, link };
}

test.serial("a linked identity signs in, and unlinking it ends the sessions that it started", async (t) => {
  const { user, browser, link } = await linking();
  const sub = newSubject();
  t.is((await link(sub)).url, ACCOUNT);
  t.like(await accountOf(browser), { identities: [{ subject: sub }] });
  const other = await arrive({ sub });
  t.is((await accountOf(other.browser)).user.id, user.id);

  const unlinked = await browser.press(await browser.open(ACCOUNT), `Unlink ${sub}`);
  t.is(unlinked.status, 200);
  t.deepEqual((await accountOf(browser)).identities, []);
  t.false(await isSignedIn(service, other.browser));
});

test.serial("an identity can't be linked twice, nor from the browser of another user", async (t) => {
  const sub = newSubject();
  const first = await arrive({ sub });
  const { browser, link } = await linking();
  t.is((await link(sub)).status, 409);
  t.is((await link(newSubject(), first.browser)).status, 400);
  t.deepEqual((await accountOf(browser)).identities, []);
});

test.serial("the only way to sign in can't be unlinked", async (t) => {
  const sub = newSubject();
  const auth_time = Math.floor(Date.now() / 1000);
  const { browser } = await arrive({ sub, auth_time });
  const open = () => browser.open(ACCOUNT);
  const refused = await browser.press(await open(), `Unlink ${sub}`);
  t.is(refused.status, 409);
  t.is((await accountOf(browser)).identities.length, 1);
  await browser.press(await open(), "Set password", { new_password: "a password at last" });
  t.is((await browser.press(await open(), `Unlink ${sub}`)).status, 200);
});

const UNAVAILABLE = /Example ID is unavailable right now/;

test.serial("a provider that can't be reached, at the start or in a sign-in, is tried again", async (t) => {
  const port = await freePort();
  const lonely = await startTestService(providerSettings(`http://localhost:${port}`));
  const browser = new TestBrowser(lonely.url);
  const page = await browser.open(`${lonely.url}/auth/login`);
  t.is(page.status, 200);
  t.regex(page.text, UNAVAILABLE);
  t.is((await browser.open(`${lonely.url}/auth/sso`)).status, 503);
  t.is((await browser.signIn(page, await lonely.createUser([]))).status, 200, "signing in by password works");

  const back = await startMockProvider(port);
  advanceClock(61_000);
  const visitor = new TestBrowser(lonely.url);
  t.regex((await visitor.open(`${lonely.url}/auth/login`)).text, /Continue with Example ID/);
  const callback = await back.answer(await visitor.open(`${lonely.url}/auth/sso`));
  await back.stop();
  const failed = await visitor.open(callback);
  t.is(failed.status, 503);
  t.regex(failed.text, UNAVAILABLE);
  t.false(await isSignedIn(lonely, visitor));
  const again = await startMockProvider(port);
  t.is((await signInExternally(lonely, again, visitor)).status, 200);
});

const start = (browser: TestBrowser, query = "") => browser.open(`${service.url}/auth/sso${query}`);

test.serial("a pending sign-in expires after ten minutes", async (t) => {
  const browser = new TestBrowser(service.url);
  const back = await provider.answer(await start(browser));
  advanceClock(10 * 60_000 + 1000);
  await isSignInRefused(t, service, browser, await browser.open(back));
});

test.serial("any number of sign-ins may be started, and the last ones completed", async (t) => {
  const browser = new TestBrowser(service.url);
  const long = `/dashboard/links?search=${"x".repeat(1000)}`;
  const pages: Page[] = [];
  for (let count = 0; count < 16; count++) {
    const return_to = count % 2 ? long : "/dashboard/account";
    pages.push(await start(browser, `?${new URLSearchParams({ return_to })}`));
    t.is(pages.at(-1)?.status, 303, `${count}`);
    advanceClock(10);
  }
  const cookies = await browser.jar.getCookieString(`${service.url}/auth/sso/callback`);
  t.true(cookies.length < 6000, `${cookies.length}`);
  const [first, last, beforeLast] = [pages.at(0), pages.at(-1), pages.at(-2)] as [Page, Page, Page];
  await isSignInRefused(t, service, browser, await browser.open(await provider.answer(first)));
  t.regex((await browser.open(await provider.answer(last))).url, /\/links\?search=/);
  t.is((await browser.open(await provider.answer(beforeLast))).url, ACCOUNT);
});

test.serial("a pending sign-in is kept in a signed, HttpOnly, SameSite cookie", async (t) => {
  const browser = new TestBrowser(service.url);
  const away = await start(browser);
  const cookies = await browser.jar.getCookies(`${service.url}/auth/sso/callback`);
  const mine = cookies.filter(({ key }) => key.startsWith("sso-"));
  t.is(mine.length, 2, "the cookie and its signature");
  for (const { httpOnly, sameSite, path } of mine)
    t.deepEqual([httpOnly, sameSite, path], [true, "lax", "/auth/sso"]);

  const forged = mine.find(({ key }) => !key.endsWith(".sig"));
  if (!forged) return t.fail();
  const remembered = JSON.parse(Buffer.from(forged.value, "base64url").toString());
  const changed = { ...remembered, returnTo: "https://evil.example/" };
  forged.value = Buffer.from(JSON.stringify(changed)).toString("base64url");
  await browser.jar.setCookie(forged, service.url);
  await isSignInRefused(t, service, browser, await browser.open(await provider.answer(away)));
});

test.serial("SSO never signs in with an existing session ID", async (t) => {
  const user = await service.createUser([]);
  const { browser } = await browserOf(service, user);
  const thief = await thiefOf(service, browser);
  t.true(await isSignedIn(service, thief));
  await signInExternally(service, provider, browser);
  t.false(await isSignedIn(service, thief));
  t.false((await browser.open(`${service.url}/dashboard/account`)).text.includes(user.username));
});

test.serial("no request can choose the provider: only the settings do", async (t) => {
  const evil = new URLSearchParams({ issuer: "https://evil.example", iss: "https://evil.example" });
  const away = await start(new TestBrowser(service.url), `?${evil}`);
  t.is(new URL(away.url).origin, new URL(provider.issuer).origin);

  const none = await startTestService();
  const browser = new TestBrowser(none.url);
  for (const path of ["/auth/sso", `/auth/sso?${evil}`, `/auth/sso/callback?code=a&state=b&${evil}`])
    t.is((await browser.open(none.url + path)).status, 404, path);
  const signIn = await browser.open(`${none.url}/auth/login`);
  t.notRegex(signIn.text, /Continue with|\/auth\/sso/);
  const account = await browser.signIn(signIn, await none.createUser([]));
  const csrf = account.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const body = new URLSearchParams({ csrf, issuer: "https://evil.example" });
  const linked = await browser.open(`${none.url}/dashboard/account/identities`, { method: "POST", body });
  t.is(linked.status, 404);
});

test.serial("another site's link to SSO doesn't replace the session without asking", async (t) => {
  const sub = newSubject();
  const { browser } = await arrive({ sub, preferred_username: sub });
  for (const site of ["cross-site", "same-site"]) {
    const page = await browser.open(`${service.url}/auth/sso`, { headers: { "sec-fetch-site": site } });
    t.is(page.status, 200, site);
    t.true(page.url.startsWith(service.url), "no redirect to the provider");
    t.true(page.text.includes(sub), "the page names the signed-in user");
    const own = { headers: { "sec-fetch-site": "same-origin" } };
    const away = await follow(browser, page, "Continue with Example ID", own);
    t.true(away.url.startsWith(provider.issuer));
  }
  const visitor = new TestBrowser(service.url);
  const away = await visitor.open(`${service.url}/auth/sso`, { headers: { "sec-fetch-site": "cross-site" } });
  t.true(away.url.startsWith(provider.issuer), "without a session, nothing can be replaced");
});

test.serial("an identity that is unlinked before the second factor starts no session", async (t) => {
  const user = await createProtected(service);
  const identity = { issuer: provider.issuer, subject: "unlinked-meanwhile" };
  await service.storage.identities.link(user.id, { ...identity, label: null }, { id: user.id });
  const { browser, page } = await arrive({ sub: identity.subject });
  t.is(page.url, `${service.url}/auth/second-factor`);
  t.true(await service.storage.identities.unlink(user.id, identity, { id: user.id }));
  const done = await browser.press(page, "Continue", { totp: user.code() });
  t.is(done.status, 400);
  t.false(await isSignedIn(service, browser));
});
