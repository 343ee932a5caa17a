import test, { type ExecutionContext } from "ava";
import { authorizeUrl, createApp, postAsClient, redeemCode, sendForm } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
const other = await service.createUser([own.id]);
test.after.always(() => service.close());

// With the consent page, which names the account.
const PROMPT = { prompt: "select_account consent", scope: "openid links:read" };
const CONTINUE = `Continue as ${user.username}`;
const ANOTHER = "Use another account";

const open = (browser: TestBrowser, changes = {}) =>
  browser.open(authorizeUrl(service, app, { ...PROMPT, ...changes }));

/** Opens the account choice page in a browser with a session. */
async function openChoice(changes = {}) {
  const browser = await signedIn();
  return { browser, page: await open(browser, changes) };
}

async function signedIn(): Promise<TestBrowser> {
  const browser = new TestBrowser(service.url);
  await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
  return browser;
}

const isChoicePage = ({ html }: Page) => html.querySelector("h1")?.text === "Choose an account";
const isSignInForm = ({ html }: Page) => html.querySelector("#password") !== null;
const isConsentPage = ({ html }: Page, { username }: TestUser) =>
  html.querySelector("h1")?.text === "Allow access?" && html.toString().includes(username);

/** Asserts that approving leads to tokens of a user, who stays signed in. */
async function assertApproves(
  t: ExecutionContext,
  browser: TestBrowser,
  consent: Page,
  { id, username }: TestUser,
) {
  const callback = new URL((await browser.press(consent, "Allow")).url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  const [, payload = ""] = String(body.id_token).split(".");
  t.is(JSON.parse(Buffer.from(payload, "base64url").toString()).sub, id);
  t.is(await signedInAs(browser), username);
}

async function signedInAs(browser: TestBrowser): Promise<string | undefined> {
  const headers = { accept: "application/json" };
  const { status, text } = await browser.open(`${service.url}/dashboard/me`, { headers });
  return status === 200 ? JSON.parse(text).user.username : undefined;
}

test("with a session the user continues without a password", async (t) => {
  const { browser, page } = await openChoice();
  t.is(page.status, 200);
  t.true(isChoicePage(page));
  t.true(page.text.includes(app.name));
  t.deepEqual(
    page.html.querySelectorAll("button").map(({ text }) => text),
    [CONTINUE, ANOTHER],
  );
  const consent = await browser.press(page, CONTINUE);
  t.true(isConsentPage(consent, user));
  await assertApproves(t, browser, consent, user);
});

test("without a session the user signs in and isn't asked to choose", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await open(browser);
  t.true(isSignInForm(page));
  const consent = await browser.signIn(page, user);
  t.true(isConsentPage(consent, user));
  await assertApproves(t, browser, consent, user);
});

test("signing in with another account replaces the previous session", async (t) => {
  const { browser, page } = await openChoice();
  const before = new TestBrowser(service.url);
  for (const cookie of await browser.jar.getCookies(service.url))
    await before.jar.setCookie(cookie, service.url);
  const form = await browser.press(page, ANOTHER);
  t.true(isSignInForm(form));
  t.is(await signedInAs(browser), user.username, "until another account has signed in");
  const consent = await browser.signIn(form, other);
  t.true(isConsentPage(consent, other));
  t.false(consent.text.includes(user.username));
  await assertApproves(t, browser, consent, other);
  t.is(await signedInAs(before), undefined, "the previous session has ended");
});

test("a wrong password for another account keeps the current session", async (t) => {
  const { browser, page } = await openChoice();
  const form = await browser.press(page, ANOTHER);
  const again = await browser.signIn(form, { ...other, password: "wrong" });
  t.is(again.status, 400);
  t.true(isSignInForm(again));
  t.is(await signedInAs(browser), user.username);
  t.true(isConsentPage(await browser.signIn(again, other), other));
});

test('the same account may sign in after "Use another account"', async (t) => {
  const { browser, page } = await openChoice();
  const consent = await browser.signIn(await browser.press(page, ANOTHER), user);
  t.true(isConsentPage(consent, user));
  await assertApproves(t, browser, consent, user);
});

test("the sign-in form for another account isn't skipped by the current session", async (t) => {
  const { browser, page } = await openChoice();
  const form = await browser.press(page, ANOTHER);
  t.true(isSignInForm(await browser.open(form.url)));
  t.true(isSignInForm(await browser.open(form.url)));
});

test("signing in with another account in another tab completes the sign-in form", async (t) => {
  const { browser, page } = await openChoice();
  const form = await browser.press(page, ANOTHER);
  await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), other);
  const consent = await browser.open(form.url);
  t.true(isConsentPage(consent, other));
  await assertApproves(t, browser, consent, other);
});

test("an account that signs in before the form's redirect is followed takes its place", async (t) => {
  const browser = new TestBrowser(service.url);
  const form = await open(browser);
  browser.follows = false;
  const signedIn = await browser.signIn(form, user);
  const resume = new URL(signedIn.headers.get("location") ?? "", form.url).href;
  t.regex(resume, /\/oauth\/authorize\/[\w-]+$/);
  browser.follows = true;
  await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), other);
  const consent = await browser.open(resume);
  t.true(isConsentPage(consent, other), consent.text);
  await assertApproves(t, browser, consent, other);
});

for (const prompt of ["select_account consent", "consent select_account"]) {
  test(`prompt=${prompt} asks for the account, then for consent`, async (t) => {
    const { browser, page } = await openChoice({ prompt });
    t.true(isChoicePage(page));
    t.true(isConsentPage(await browser.press(page, CONTINUE), user));
  });
}

for (const prompt of ["consent select_account login", "login select_account consent"]) {
  test(`prompt=${prompt} asks only for the password, of any account`, async (t) => {
    for (const account of [user, other]) {
      const { browser, page } = await openChoice({ prompt });
      t.true(isSignInForm(page));
      t.true(isConsentPage(await browser.signIn(page, account), account));
    }
  });
}

test("prompt=none with select_account is rejected with invalid_request", async (t) => {
  const { page } = await openChoice({ prompt: "none select_account" });
  t.is(new URL(page.url).searchParams.get("error"), "invalid_request");
});

test("a pushed request may use prompt=select_account", async (t) => {
  const url = new URL(authorizeUrl(service, app, PROMPT));
  const { body } = await postAsClient(service, "par", app, Object.fromEntries(url.searchParams));
  const query = new URLSearchParams({ client_id: app.clientId, request_uri: String(body.request_uri) });
  const browser = await signedIn();
  const page = await browser.open(`${service.url}/oauth/authorize?${query}`);
  t.true(isChoicePage(page));
  const consent = await browser.press(page, CONTINUE);
  await assertApproves(t, browser, consent, user);
});

test("a choice without a valid CSRF token is rejected", async (t) => {
  const { browser, page } = await openChoice();
  const { page: foreign } = await openChoice();
  const token = foreign.html.querySelector("[name=csrf]")?.attributes.value;
  for (const csrf of [undefined, "", "x", token]) {
    const answer = await sendForm(browser, page, { csrf, account: "current" });
    t.is(answer.status, 400);
    t.is(answer.headers.get("location"), null);
  }
  t.true(isConsentPage(await browser.press(page, CONTINUE), user));
});

test("a choice is bound to its browser", async (t) => {
  const { page } = await openChoice();
  const another = await signedIn();
  t.is((await another.open(page.url)).status, 400);
  for (const account of ["current", "other"]) {
    t.is((await sendForm(another, page, { account })).status, 400, account);
    t.is((await sendForm(new TestBrowser(service.url), page, { account })).status, 400, account);
  }
});

test("a choice can't be changed once made", async (t) => {
  const { browser, page } = await openChoice();
  await browser.press(page, ANOTHER);
  const again = await sendForm(browser, page, { account: "current" });
  t.is(again.status, 400);
  t.is(again.headers.get("location"), null);
});

test("other steps are rejected until an account is chosen", async (t) => {
  const { browser, page } = await openChoice();
  const { origin, pathname } = new URL(page.url);
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const steps: [step: string, fields: Record<string, string>][] = [
    ["consent", { decision: "allow", organization_id: own.id }],
    ["sign-in", { username: other.username, password: other.password }],
  ];
  for (const [step, fields] of steps) {
    const body = new URLSearchParams({ csrf, ...fields });
    const answer = await browser.open(`${origin}${pathname}/${step}`, { method: "POST", body });
    t.is(answer.status, 400, step);
  }
});

test("a choice is rejected after its session has ended", async (t) => {
  const { browser, page } = await openChoice();
  await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), other);
  const late = await sendForm(browser, page, { account: "current" });
  t.is(late.status, 400);
  t.is(late.headers.get("location"), null);
});

test.serial("with a session older than max_age the user signs in and isn't asked to choose", async (t) => {
  const browser = await signedIn();
  advanceClock(61_000);
  const page = await open(browser, { max_age: "60" });
  t.true(isSignInForm(page));
  t.true(isConsentPage(await browser.signIn(page, user), user));
});
