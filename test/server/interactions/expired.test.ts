import test, { type ExecutionContext } from "ava";
import { authorizeUrl, createApp, postAsClient, redeemCode, sendForm } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

const MINUTE = 60_000;
const EXPIRED = "This sign-in request has expired";

async function signedIn(): Promise<TestBrowser> {
  const browser = new TestBrowser(service.url);
  await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
  return browser;
}

/** Each page with a form, and the button that is pressed too late. */
const PAGES: Record<string, () => Promise<{ browser: TestBrowser; page: Page; button: string }>> = {
  "the sign-in page": async () => {
    const browser = new TestBrowser(service.url);
    return { browser, page: await browser.open(authorizeUrl(service, app)), button: "Sign in" };
  },
  "the consent page": async () => {
    const browser = await signedIn();
    const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
    return { browser, page, button: "Allow" };
  },
  "the page to choose an account": async () => {
    const browser = await signedIn();
    const page = await browser.open(authorizeUrl(service, app, { prompt: "select_account consent" }));
    return { browser, page, button: "Use another account" };
  },
};

const titleOf = ({ html }: Page) => html.querySelector("h1")?.text;

async function finish(t: ExecutionContext, browser: TestBrowser, started: Page) {
  let page = started;
  if (titleOf(page) === "Choose an account") page = await browser.press(page, `Continue as ${user.username}`);
  if (titleOf(page) === "Sign in") page = await browser.signIn(page, user);
  // A consent that was given before is remembered.
  if (titleOf(page) === "Allow access?") page = await browser.press(page, "Allow");
  const callback = new URL(page.url);
  t.is(callback.searchParams.get("state"), "a-state");
  const { status, text } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(status, 200, text);
}

for (const [name, open] of Object.entries(PAGES)) {
  test.serial(
    `${name} that was open for too long offers to start again, with the same request`,
    async (t) => {
      const { browser, page, button } = await open();
      advanceClock(16 * MINUTE);
      const { username, password } = user;
      const late = await browser.press(page, button, button === "Sign in" ? { username, password } : {});
      t.is(late.status, 400);
      t.is(titleOf(late), EXPIRED);
      const link = late.html.querySelectorAll("main a").find(({ text }) => text === "Start again");
      await finish(t, browser, await browser.open(new URL(link?.attributes.href ?? "", service.url).href));
    },
  );
}

test.serial("a pushed request isn't repeated in a URL: the page leads back to the app", async (t) => {
  const fields = Object.fromEntries(new URL(authorizeUrl(service, app)).searchParams);
  const { body } = await postAsClient(service, "par", app, fields);
  const query = new URLSearchParams({ client_id: app.clientId, request_uri: String(body.request_uri) });
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/oauth/authorize?${query}`);
  advanceClock(16 * MINUTE);
  const late = await browser.signIn(page, user);
  t.is(titleOf(late), EXPIRED);
  t.regex(late.text, /Start again from the app\./);
  t.notRegex(late.text, /oauth\/authorize/);
});

for (const restart of [
  "https://evil.example/oauth/authorize?client_id=x",
  "//evil.example/oauth/authorize",
  "/spring",
  "/dashboard/account",
  "/oauth/authorize/x",
  "javascript:alert(1)",
]) {
  test.serial(`an expired form doesn't lead to ${restart}`, async (t) => {
    const { browser, page } = await (
      PAGES["the sign-in page"] as () => Promise<{ browser: TestBrowser; page: Page }>
    )();
    advanceClock(16 * MINUTE);
    const text = await (await sendForm(browser, page, { restart })).text();
    t.regex(text, new RegExp(EXPIRED));
    t.false(text.includes(`href="${restart}"`));
    t.regex(text, /Start again from the app\./);
  });
}

test.serial("a request of the largest size can be signed in to", async (t) => {
  const browser = new TestBrowser(service.url);
  const state = "é%".repeat(680);
  const consent = await browser.signIn(await browser.open(authorizeUrl(service, app, { state })), user);
  t.is(titleOf(consent) ?? "in the app", "in the app");
  t.is(new URL(consent.url).searchParams.get("state"), state);
});

test.serial("reloading the answer to a form leads to the page of the step", async (t) => {
  for (const open of Object.values(PAGES)) {
    const { browser, page } = await open();
    const action = new URL(page.html.querySelector("form")?.attributes.action ?? "", page.url).href;
    const again = await browser.open(action);
    t.is(again.status, 200);
    t.is(again.url, page.url);
    t.is(titleOf(again), titleOf(page));
  }
  const browser = new TestBrowser(service.url);
  const failed = await browser.signIn(await browser.open(authorizeUrl(service, app)), {
    ...user,
    password: "no",
  });
  t.is(failed.status, 400);
  t.is(titleOf(await browser.open(failed.url)), "Sign in");
  await finish(t, browser, await browser.signIn(await browser.open(failed.url), user));
});
