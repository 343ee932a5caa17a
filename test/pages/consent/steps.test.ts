import test, { type ExecutionContext } from "ava";
import { decodeJwt } from "jose";
import { sendForm, shareApp } from "../../harness/clients/authorization.ts";
import { authorizeUrl } from "../../harness/clients/authorization-request.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi, postAsClient, redeemCode } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { accountIn, follow, thiefOf } from "../../harness/clients/visits.ts";
import { advanceClock, MINUTE_MS } from "../../harness/clock.ts";
import type { TestUser } from "../../harness/service.ts";

const { service, app, own, user } = await shareApp();
const other = await service.createUser([own.id]);

// With the consent page, which names the account.
const PROMPT = { prompt: "select_account consent", scope: "openid links:read" };
const CONTINUE = `Continue as ${user.username}`;
const ANOTHER = "Use another account";

const open = (browser: TestBrowser, changes = {}) =>
  browser.open(authorizeUrl(service, app, { ...PROMPT, ...changes }));

async function openChoice(changes = {}) {
  const { browser } = await browserOf(service, user);
  return { browser, page: await open(browser, changes) };
}

const titleOf = ({ html }: Page) => html.querySelector("h1")?.text;
const isSignInForm = ({ html }: Page) => html.querySelector("#password") !== null;
const isConsentPage = (page: Page, { username }: TestUser) =>
  titleOf(page)?.startsWith("Allow ") && page.html.toString().includes(username);

/** Asserts that approving leads to tokens of a user, who stays signed in, and returns the one for the API. */
async function assertApproves(
  t: ExecutionContext,
  browser: TestBrowser,
  consent: Page,
  { id, username }: TestUser,
) {
  const callback = new URL((await browser.press(consent, "Allow")).url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(decodeJwt(String(body.id_token)).sub, id);
  t.is(await signedInAs(browser), username);
  return body.access_token;
}

const signedInAs = async (browser: TestBrowser) => (await accountIn(service, browser))?.user.username;

test("with a session the user continues without a password", async (t) => {
  const { browser, page } = await openChoice();
  t.is(page.status, 200);
  t.is(titleOf(page), "Choose an account");
  t.true(page.text.includes(app.name));
  const buttons = page.html.querySelectorAll("button").map(({ text }) => text);
  t.deepEqual(buttons, [CONTINUE, ANOTHER]);
  const consent = await browser.press(page, CONTINUE);
  t.true(isConsentPage(consent, user));
  await assertApproves(t, browser, consent, user);
});

test("signing in with another account replaces the previous session, and revokes no token", async (t) => {
  const { browser, page: first } = await openChoice();
  const token = await assertApproves(t, browser, await browser.press(first, CONTINUE), user);
  const page = await open(browser);
  const before = await thiefOf(service, browser);
  const form = await browser.press(page, ANOTHER);
  t.true(isSignInForm(form));
  t.is(await signedInAs(browser), user.username, "until another account has signed in");
  const consent = await browser.signIn(form, other);
  t.true(isConsentPage(consent, other));
  t.false(consent.text.includes(user.username));
  await assertApproves(t, browser, consent, other);
  t.is(await signedInAs(before), undefined, "the previous session has ended");
  t.true(await isAcceptedByApi(service, token));
});

test("the sign-in form isn't skipped by the current session, which a wrong password keeps", async (t) => {
  const { browser, page } = await openChoice();
  const form = await browser.press(page, ANOTHER);
  t.true(isSignInForm(await browser.open(form.url)));
  const again = await browser.signIn(form, { ...other, password: "wrong" });
  t.is(again.status, 400);
  t.true(isSignInForm(again));
  t.is(await signedInAs(browser), user.username);
  const consent = await browser.signIn(again, user);
  t.true(isConsentPage(consent, user), "the same account may sign in");
  await assertApproves(t, browser, consent, user);
});

test("a sign-in with another account in another tab completes the sign-in form", async (t) => {
  const { browser, page } = await openChoice();
  const form = await browser.press(page, ANOTHER);
  await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), other);
  t.true(isConsentPage(await browser.open(form.url), other));
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

test("a choice can't be changed once made, nor made after its session has ended", async (t) => {
  const [made, ended] = [await openChoice(), await openChoice()];
  await made.browser.press(made.page, ANOTHER);
  await ended.browser.signIn(await ended.browser.open(`${service.url}/auth/login?again=1`), other);
  for (const { browser, page } of [made, ended]) {
    const { status, headers } = await sendForm(browser, page, { account: "current" });
    t.deepEqual([status, headers.get("location")], [400, null]);
  }
});

test("other steps are rejected until an account is chosen", async (t) => {
  const { browser, page } = await openChoice();
  const { origin, pathname } = new URL(page.url);
  const { username, password } = other;
  const steps = {
    consent: { decision: "allow", organization_id: own.id },
    "sign-in": { username, password },
  };
  for (const [step, fields] of Object.entries(steps)) {
    page.html.querySelector("form")?.setAttribute("action", `${origin}${pathname}/${step}`);
    t.is((await sendForm(browser, page, fields)).status, 400, step);
  }
});

const EXPIRED = "This sign-in request has expired";

/** Each page with a form: the prompt that leads there, and the button that is pressed too late. */
const PAGES = {
  "the sign-in page": [undefined, "Sign in"],
  "the sign-in page for any account": ["select_account login consent", "Sign in"],
  "the consent page": ["consent", "Allow"],
  "the page to choose an account": ["select_account consent", ANOTHER],
} as const;

/** Opens an authorization request in a new browser, which is signed in if there is a prompt. */
async function start(prompt?: string) {
  const browser = prompt ? (await browserOf(service, user)).browser : new TestBrowser(service.url);
  return { browser, page: await browser.open(authorizeUrl(service, app, { prompt })) };
}

async function finish(t: ExecutionContext, browser: TestBrowser, started: Page) {
  let page = started;
  if (titleOf(page) === "Choose an account") page = await browser.press(page, CONTINUE);
  if (titleOf(page) === "Sign in") page = await browser.signIn(page, user);
  // A consent that was given before is remembered.
  if (titleOf(page)?.startsWith("Allow ")) page = await browser.press(page, "Allow");
  const callback = new URL(page.url);
  t.is(callback.searchParams.get("state"), "a-state");
  const { status, text } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  t.is(status, 200, text);
}

for (const [name, [prompt, button]] of Object.entries(PAGES))
  test.serial(`${name} that was open too long offers to start again, with the same request`, async (t) => {
    const { browser, page } = await start(prompt);
    advanceClock(16 * MINUTE_MS);
    const { username, password } = user;
    const late = await browser.press(page, button, button === "Sign in" ? { username, password } : {});
    t.is(late.status, 400);
    t.is(titleOf(late), EXPIRED);
    await finish(t, browser, await follow(browser, late, "Start again"));
  });

test.serial("a pushed request isn't repeated in a URL: the page leads back to the app", async (t) => {
  const fields = Object.fromEntries(new URL(authorizeUrl(service, app)).searchParams);
  const { body } = await postAsClient(service, "par", app, fields);
  const query = new URLSearchParams({ client_id: app.clientId, request_uri: String(body.request_uri) });
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/oauth/authorize?${query}`);
  advanceClock(16 * MINUTE_MS);
  const late = await browser.signIn(page, user);
  t.is(titleOf(late), EXPIRED);
  t.regex(late.text, /Start again from the app\./);
  t.notRegex(late.text, /oauth\/authorize/);
});

test.serial("an expired form doesn't lead anywhere else", async (t) => {
  const evil = ["https://evil.example/oauth/authorize?client_id=x", "//evil.example/oauth/authorize"];
  const others = ["/spring", "/dashboard/account", "/oauth/authorize/x", "javascript:alert(1)"];
  for (const restart of [...evil, ...others]) {
    const { browser, page } = await start();
    advanceClock(16 * MINUTE_MS);
    const text = await (await sendForm(browser, page, { restart })).text();
    t.regex(text, new RegExp(EXPIRED));
    t.false(text.includes(`href="${restart}"`));
    t.regex(text, /Start again from the app\./);
  }
});

test.serial("a request of the largest size can be signed in to", async (t) => {
  const browser = new TestBrowser(service.url);
  const state = "é%".repeat(680);
  const consent = await browser.signIn(await browser.open(authorizeUrl(service, app, { state })), user);
  t.is(titleOf(consent) ?? "in the app", "in the app");
  t.is(new URL(consent.url).searchParams.get("state"), state);
});

test.serial("reloading the answer to a form leads to the page of the step", async (t) => {
  for (const [prompt] of Object.values(PAGES)) {
    const { browser, page } = await start(prompt);
    const action = new URL(page.html.querySelector("form")?.attributes.action ?? "", page.url).href;
    const again = await browser.open(`${action}?decision=allow&organization_id=${own.id}`);
    t.is(again.status, 200);
    t.is(again.url, page.url);
    t.is(titleOf(again), titleOf(page));
  }
  const { browser, page } = await start();
  const failed = await browser.signIn(page, { ...user, password: "no" });
  t.is(failed.status, 400);
  t.is(titleOf(await browser.open(failed.url)), "Sign in");
  await finish(t, browser, await browser.signIn(await browser.open(failed.url), user));
});
