import test from "ava";
import { allow, authorizeUrl, createApp, openConsent } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

async function sessionOf(browser: TestBrowser): Promise<string | undefined> {
  const cookies = await browser.jar.getCookies(service.url);
  return cookies.find(({ key }) => key === "session")?.value;
}

test("signing in replaces a session cookie that an attacker has set", async (t) => {
  const browser = new TestBrowser(service.url);
  await browser.jar.setCookie("session=chosen-by-an-attacker", service.url);
  await browser.jar.setCookie("session.sig=chosen-by-an-attacker", service.url);
  await openConsent(browser, user, authorizeUrl(service, app));
  const session = await sessionOf(browser);
  t.truthy(session);
  t.not(session, "chosen-by-an-attacker");
});

test("signing in again creates a new session and ends the old one", async (t) => {
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app), { browser });
  const before = (await browser.jar.getCookies(service.url)).filter(({ key }) => key.startsWith("session"));
  const again = await browser.open(authorizeUrl(service, app, { prompt: "login" }));
  await browser.signIn(again, user);
  t.not(await sessionOf(browser), before.find(({ key }) => key === "session")?.value);

  const thief = new TestBrowser(service.url);
  for (const cookie of before) await thief.jar.setCookie(cookie.toString(), service.url);
  const page = await thief.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"), "the old cookie leads to the sign-in form");
});
