import test from "ava";
import { createProtected } from "../../../harness/clients/second-factor.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { signInExternally, startWithProvider } from "../../../harness/providers/identity-provider.ts";

const { provider, service, close } = await startWithProvider();
test.after.always(close);

const ACCOUNT = `${service.url}/dashboard/account`;

let count = 0;

/** Signs in a user of the provider, whose ID token has these claims. */
async function arrive(claims: object = {}, browser = new TestBrowser(service.url), query = "") {
  const sub = `subject-${++count}`;
  provider.say(({ payload }) => Object.assign(payload, { sub, preferred_username: sub, ...claims }));
  const page = await signInExternally(service, provider, browser, query);
  return { browser, page, sub };
}

const now = () => Math.floor(Date.now() / 1000);

async function usernameIn(browser: TestBrowser): Promise<string | undefined> {
  const { text } = await browser.open(ACCOUNT, { headers: { accept: "application/json" } });
  return JSON.parse(text).user?.username;
}

test.serial("an SSO sign-in without auth_time doesn't count as a recent sign-in", async (t) => {
  const { browser, sub } = await arrive();
  t.is(await usernameIn(browser), sub);
  const asked = await browser.press(await browser.open(ACCOUNT), "Delete account");
  t.true(asked.url.includes("/auth/login") && asked.url.includes("again=1"), asked.url);

  await arrive({ sub, auth_time: now() }, browser, "?again=1");
  const gone = await browser.press(await browser.open(ACCOUNT), "Delete account");
  t.is(gone.url, `${service.url}/auth/login`);
});

test.serial("another site's link to SSO doesn't replace the session without asking", async (t) => {
  const { browser, sub } = await arrive();
  for (const site of ["cross-site", "same-site"]) {
    const page = await browser.open(`${service.url}/auth/sso`, { headers: { "sec-fetch-site": site } });
    t.is(page.status, 200, site);
    t.true(page.url.startsWith(service.url), "no redirect to the provider");
    t.true(page.text.includes(sub), "the page names the signed-in user");
    const link = page.html.querySelectorAll("a").find(({ text }) => text === "Continue with Example ID");
    const href = new URL(link?.attributes.href ?? "", service.url).href;
    const away = await browser.open(href, { headers: { "sec-fetch-site": "same-origin" } });
    t.true(away.url.startsWith(provider.issuer));
  }
  const visitor = new TestBrowser(service.url);
  const away = await visitor.open(`${service.url}/auth/sso`, { headers: { "sec-fetch-site": "cross-site" } });
  t.true(away.url.startsWith(provider.issuer), "without a session, nothing can be replaced");
});

test.serial("unlinking an identity ends the sessions that it started, and no others", async (t) => {
  const user = await service.createUser([]);
  const own = new TestBrowser(service.url);
  await own.signIn(await own.open(`${service.url}/auth/login`), user);
  const sub = "linked";
  await service.storage.identities.link(
    user.id,
    { issuer: provider.issuer, subject: sub, label: sub },
    { id: user.id },
  );
  const { browser } = await arrive({ sub });
  t.is(await usernameIn(browser), user.username);
  await own.press(await own.open(ACCOUNT), `Unlink ${sub}`);
  t.is(await usernameIn(browser), undefined);
  t.is(await usernameIn(own), user.username);
});

test.serial(
  "an identity that is unlinked before the second factor is proved starts no session",
  async (t) => {
    const user = await createProtected(service);
    const identity = { issuer: provider.issuer, subject: "unlinked-meanwhile" };
    await service.storage.identities.link(user.id, { ...identity, label: null }, { id: user.id });
    const { browser, page } = await arrive({ sub: identity.subject });
    t.is(page.url, `${service.url}/auth/second-factor`);
    t.true(await service.storage.identities.unlink(user.id, identity, { id: user.id }));
    const done = await browser.press(page, "Continue", { totp: user.code() });
    t.is(done.status, 400);
    t.is(await usernameIn(browser), undefined);
  },
);
