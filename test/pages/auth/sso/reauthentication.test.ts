import test from "ava";
import { authorizeUrl, createApp } from "../../../harness/clients/authorization-request.ts";
import { type Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { follow } from "../../../harness/clients/visits.ts";
import { advanceClock, MINUTE_MS } from "../../../harness/clock.ts";
import { freePort } from "../../../harness/program.ts";
import {
  providerSettings,
  signInWith,
  startMockProvider,
} from "../../../harness/providers/identity-provider.ts";
import { startOidcProvider } from "../../../harness/providers/oidc-identity-provider.ts";
import { OPERATOR, startTestService } from "../../../harness/service.ts";

const port = await freePort();
const service = await startTestService(providerSettings(`http://localhost:${port}`));
const provider = await startOidcProvider(service, port);

const ACCOUNT = `${service.url}/dashboard/account`;
const BUTTON = "Continue with Example ID";

let count = 0;

async function visitor() {
  const name = `visitor${++count}`;
  const [browser, there] = [new TestBrowser(service.url), new TestBrowser(provider.issuer)];
  const come = async (page: Page) => {
    const away = await follow(browser, page, BUTTON);
    return browser.open(await provider.answerAs(name, away.url, there));
  };
  await come(await browser.open(`${service.url}/auth/login`));
  return { name, browser, there, come };
}

// Serial, because each test moves the clock.
test.serial("a sensitive action sends an SSO-only user to the provider and back", async (t) => {
  const { browser, there, name, come } = await visitor();
  advanceClock(11 * MINUTE_MS);
  const asked = await browser.press(await browser.open(ACCOUNT), "Delete account");
  t.true(asked.url.includes("/auth/login"), asked.url);
  const away = new URL((await follow(browser, asked, BUTTON)).url);
  t.is(away.searchParams.get("prompt"), "login");
  const form = (await there.open(away.href)).html.querySelector("form");
  t.truthy(form, "the provider asks again despite its session");
  const back = await come(asked);
  t.is(back.html.querySelector("h1")?.text, "Delete the account?");
  const gone = await browser.press(back, "Delete the account");
  t.is(gone.url, `${service.url}/auth/login?deleted=1`);
  t.is(await service.storage.accounts.findByUsername(name), undefined);
});

test.serial("an old sign-in at the provider isn't recent, nor one without auth_time", async (t) => {
  const mock = await startMockProvider();
  const other = await startTestService(providerSettings(mock.issuer));
  async function come(query: string, minutesAgo?: number) {
    const auth_time = minutesAgo && Math.floor(Date.now() / 1000) - 60 * minutesAgo;
    return signInWith(other, mock, { auth_time }, { query });
  }
  t.is((await come("")).page.status, 200, "the user exists");
  t.is((await come("?again=1", 11)).page.status, 400);
  t.is((await come("?again=1")).page.status, 400, "a provider that omits auth_time");
  t.is((await come("?again=1", 5)).page.status, 200);

  const { browser, page } = await come("", 11);
  t.is(page.status, 200, "it signs in");
  const unknown = await come("");
  for (const one of [browser, unknown.browser]) {
    const account = await one.open(`${other.url}/dashboard/account`);
    const asked = await one.press(account, "Delete account");
    t.true(asked.url.includes("again=1"), "but does not count as recent");
  }
});

test.serial("signing in again with another identity creates no account", async (t) => {
  const { browser } = await visitor();
  const away = await browser.open(`${service.url}/auth/sso?again=1&return_to=/dashboard/account`);
  const back = await provider.answerAs("stranger", away.url, new TestBrowser(provider.issuer));
  const page = await browser.open(back);
  t.is(page.status, 403);
  t.regex(page.text, /No account is linked to this Example ID identity/);
  t.is(await service.storage.accounts.findByUsername("stranger"), undefined);
  t.is((await browser.open(ACCOUNT)).url, ACCOUNT, "and stays signed in");
});

for (const parameters of [{ prompt: "login" }, { max_age: "60", scope: "openid links:read" }]) {
  const [what] = Object.keys(parameters);
  test.serial(`with ${what}, an authorization asks the provider again and continues`, async (t) => {
    const { app, own } = await createApp(service);
    const { name, browser, come } = await visitor();
    const { id = "" } = (await service.storage.accounts.findByUsername(name)) ?? {};
    await service.storage.organizations.addMember(own.id, id, "member", OPERATOR);
    advanceClock(2 * MINUTE_MS);
    const asked = await browser.open(authorizeUrl(service, app, parameters));
    t.truthy(asked.html.querySelector("#password"));
    advanceClock(2000);
    const consent = await come(asked);
    t.regex(consent.text, /<h1>Allow /);
    const callback = new URL((await browser.press(consent, "Allow")).url);
    t.truthy(callback.searchParams.get("code"));
  });
}
