import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import { allow, authorizeUrl, createApp, openConsent } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const { browser: signedIn } = await browserOf(service, user);
test.after.always(() => service.close());

const STATES = {
  "letters from other scripts": "žluťoučký-кот-猫-🐈",
  quotes: `"'\`<>`,
  "HTML markup": "<script>alert(1)</script>",
  "URL delimiters": "a=b&c=d?e#f/g+h%20i%2B;j,k",
  "leading and trailing spaces": " x ",
  "a percent sign": "%",
  "a NUL": "a\u0000b",
  "line breaks": "a\r\nSet-Cookie: x=y\r\n\r\n",
  "2 KB": "s".repeat(2048),
  "a backslash": "\\x00\\u0000",
};

for (const [what, state] of Object.entries(STATES)) {
  test(`a state with ${what} is returned unchanged, with a code and with an error`, async (t) => {
    const success = await allow(service, user, authorizeUrl(service, app, { state }));
    t.is(success.searchParams.get("state"), state);
    t.truthy(success.searchParams.get("code"));
    const failure = await signedIn.open(authorizeUrl(service, app, { state, scope: "admin:all" }));
    t.is(new URL(failure.url).searchParams.get("state"), state);
    t.is(new URL(failure.url).searchParams.get("error"), "invalid_scope");
  });
}

test("no page contains the state", async (t) => {
  const state = `<i id="here">`;
  // Other tests of this file let the consent of their user be remembered, so there would be no page.
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const signIn = await browser.open(authorizeUrl(service, app, { state }));
  const consent = await browser.signIn(signIn, user);
  const errorPage = await browser.open(
    authorizeUrl(service, app, { state, redirect_uri: "https://evil.example/" }),
  );
  for (const page of [signIn, consent, errorPage]) {
    t.true(page.url.startsWith(service.url), page.url);
    t.false(page.text.includes("here"), page.url);
  }
});

test("the error page escapes what it repeats", async (t) => {
  const markup = "<img src=x onerror=alert(1)>";
  for (const changes of [{ client_id: markup }, { redirect_uri: markup }, { request_uri: markup }]) {
    const page = await new TestBrowser(service.url).open(authorizeUrl(service, app, changes));
    t.is(page.html.querySelector("img"), null, JSON.stringify(changes));
  }
});

test("a response to a request without a state contains none", async (t) => {
  const callback = await allow(service, user, authorizeUrl(service, app, { state: undefined }));
  t.is(callback.origin + callback.pathname, REDIRECT_URI);
  t.deepEqual([...callback.searchParams.keys()].sort(), ["code", "iss"]);
});

test("an approval and a cancellation both return iss", async (t) => {
  const url = authorizeUrl(service, app);
  const success = await allow(service, user, url);
  t.is(success.searchParams.get("iss"), service.url);
  const browser = new TestBrowser(service.url);
  const consent = await openConsent(browser, user, url);
  const cancelled = new URL((await browser.press(consent, "Cancel")).url);
  t.is(cancelled.searchParams.get("error"), "access_denied");
  t.is(cancelled.searchParams.get("iss"), service.url);
  t.is(cancelled.searchParams.get("state"), "a-state");
});

test("the query of a redirect URI is preserved", async (t) => {
  const uri = "https://app.example.com/cb?tenant=a%20b&x=";
  const { app: other, user: owner } = await createApp(service, [uri]);
  const callback = await allow(service, owner, authorizeUrl(service, other, { redirect_uri: uri }));
  t.is(callback.searchParams.get("tenant"), "a b");
  t.is(callback.searchParams.get("x"), "");
  t.truthy(callback.searchParams.get("code"));
});

test("a redirect URI with a private-use scheme receives the code", async (t) => {
  const uri = "com.example.app:/oauth/callback";
  const { app: native, user: owner } = await createApp(service, [uri]);
  const callback = await allow(service, owner, authorizeUrl(service, native, { redirect_uri: uri }));
  t.true(callback.href.startsWith(`${uri}?code=`));
});
