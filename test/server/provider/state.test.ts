import test from "ava";
import { REDIRECT_URI } from "../harness/flow.ts";
import { allow, authorizeUrl, createApp } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

const STATES = {
  "letters of other scripts": "žluťoučký-кот-猫-🐈",
  quotes: `"'\`<>`,
  markup: "<script>alert(1)</script>",
  "signs of an address": "a=b&c=d?e#f/g+h%20i%2B;j,k",
  "a space at both ends": " x ",
  "a percent sign": "%",
  "a NUL": "a\u0000b",
  "line ends": "a\r\nSet-Cookie: x=y\r\n\r\n",
  "2 kB": "s".repeat(2048),
  "a backslash": "\\x00\\u0000",
};

for (const [what, state] of Object.entries(STATES)) {
  test(`sec 18: a state with ${what} comes back as it was, with a code and with an error`, async (t) => {
    const good = await allow(service, user, authorizeUrl(service, app, { state }));
    t.is(good.searchParams.get("state"), state);
    t.truthy(good.searchParams.get("code"));
    const bad = await new Person(service.url).open(authorizeUrl(service, app, { state, scope: "admin:all" }));
    t.is(new URL(bad.url).searchParams.get("state"), state);
    t.is(new URL(bad.url).searchParams.get("error"), "invalid_scope");
  });
}

test("sec 18: a state is part of no page", async (t) => {
  const state = `<i id="here">`;
  const person = new Person(service.url);
  const signIn = await person.open(authorizeUrl(service, app, { state }));
  const consent = await person.signIn(signIn, user);
  const refusal = await person.open(
    authorizeUrl(service, app, { state, redirect_uri: "https://evil.example/" }),
  );
  for (const page of [signIn, consent, refusal]) t.false(page.text.includes("here"), page.url);
});

test("sec 18: a refusal shows what it repeats as text", async (t) => {
  const markup = "<img src=x onerror=alert(1)>";
  for (const changes of [{ client_id: markup }, { redirect_uri: markup }, { request_uri: markup }]) {
    const page = await new Person(service.url).open(authorizeUrl(service, app, changes));
    t.is(page.html.querySelector("img"), null);
  }
});

test("without a state none is sent", async (t) => {
  const callback = await allow(service, user, authorizeUrl(service, app, { state: undefined }));
  t.is(callback.origin + callback.pathname, REDIRECT_URI);
  t.deepEqual([...callback.searchParams.keys()].sort(), ["code", "iss"]);
});

test("sec 6: a success and a cancelled consent carry iss", async (t) => {
  const url = authorizeUrl(service, app);
  const success = await allow(service, user, url);
  t.is(success.searchParams.get("iss"), service.url);
  const person = new Person(service.url);
  const consent = await person.signIn(await person.open(url), user);
  const cancelled = new URL((await person.press(consent, "Cancel")).url);
  t.is(cancelled.searchParams.get("error"), "access_denied");
  t.is(cancelled.searchParams.get("iss"), service.url);
  t.is(cancelled.searchParams.get("state"), "a-state");
});

test("what the redirect URI has in its query stays there", async (t) => {
  const uri = "https://app.example.com/cb?tenant=a%20b&x=";
  const { app: other, user: person } = await createApp(service, [uri]);
  const callback = await allow(service, person, authorizeUrl(service, other, { redirect_uri: uri }));
  t.is(callback.searchParams.get("tenant"), "a b");
  t.is(callback.searchParams.get("x"), "");
  t.truthy(callback.searchParams.get("code"));
});

test("an app of a private-use scheme is called back", async (t) => {
  const uri = "com.example.app:/oauth/callback";
  const { app: native, user: person } = await createApp(service, [uri]);
  const callback = await allow(service, person, authorizeUrl(service, native, { redirect_uri: uri }));
  t.true(callback.href.startsWith(`${uri}?code=`));
});
