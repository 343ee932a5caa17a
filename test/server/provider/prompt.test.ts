import test from "ava";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  openConsent,
  redeemCode,
  sendForm,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

const responseOf = async (browser: TestBrowser, url: string) =>
  new URL((await browser.open(url)).url).searchParams;

async function signedIn(): Promise<TestBrowser> {
  const browser = new TestBrowser(service.url);
  await allow(service, user, authorizeUrl(service, app), { browser });
  return browser;
}

test("prompt=none without a session gets login_required", async (t) => {
  const query = await responseOf(
    new TestBrowser(service.url),
    authorizeUrl(service, app, { prompt: "none" }),
  );
  t.is(query.get("error"), "login_required");
  t.is(query.get("iss"), service.url);
  t.is(query.get("state"), "a-state");
  t.is(query.get("code"), null);
});

test("prompt=none with a session gets consent_required if the user has not allowed the request", async (t) => {
  const browser = await signedIn();
  const url = authorizeUrl(service, app, { prompt: "none", scope: "webhooks:read" });
  const query = await responseOf(browser, url);
  t.is(query.get("error"), "consent_required");
  t.is(query.get("code"), null);
});

test("prompt=none leaves no interaction cookie", async (t) => {
  const browser = new TestBrowser(service.url);
  await browser.open(authorizeUrl(service, app, { prompt: "none" }));
  t.deepEqual(
    (await browser.jar.getCookies(`${service.url}/interaction/x`)).filter(({ key }) => key === "interaction"),
    [],
  );
});

test("a session is asked for consent to more than was allowed, but not for the password", async (t) => {
  const browser = await signedIn();
  const page = await browser.open(authorizeUrl(service, app, { scope: "links:write webhooks:write" }));
  t.is(page.html.querySelector("#password"), null);
  t.regex(page.text, /Allow access\?/);
});

for (const prompt of ["login", "login consent"]) {
  test(`prompt=${prompt} asks for the password despite a session`, async (t) => {
    const browser = await signedIn();
    const page = await browser.open(authorizeUrl(service, app, { prompt }));
    t.truthy(page.html.querySelector("#password"));
    const next = await browser.signIn(page, user);
    const isAsked = prompt.includes("consent"); // otherwise, consent is remembered
    const callback = new URL((isAsked ? await browser.press(next, "Allow") : next).url);
    t.truthy(callback.searchParams.get("code"));
  });
}

test("prompt=consent with a session shows only the consent page", async (t) => {
  const browser = await signedIn();
  const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  t.is(page.html.querySelector("#password"), null);
});

test("a wrong password at prompt=login shows the sign-in form again", async (t) => {
  const browser = await signedIn();
  const page = await browser.open(authorizeUrl(service, app, { prompt: "login" }));
  const again = await browser.signIn(page, { ...user, password: "wrong" });
  t.is(again.status, 400);
  t.truthy(again.html.querySelector("#password"));
});

test("with prompt=login another user can sign in, and the tokens are for that user", async (t) => {
  const browser = await signedIn();
  const other = await service.createUser([own.id]);
  const page = await browser.open(
    authorizeUrl(service, app, { prompt: "login", scope: "openid links:read" }),
  );
  const consent = await browser.signIn(page, other);
  t.true(consent.text.includes(other.username));
  t.false(consent.text.includes(user.username));
  const callback = new URL((await browser.press(consent, "Allow")).url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  const [, payload = ""] = String(body.id_token).split(".");
  t.is(JSON.parse(Buffer.from(payload, "base64url").toString()).sub, other.id);
});

test("tokens of the previous user stay valid when another user signs in", async (t) => {
  const browser = new TestBrowser(service.url);
  const first = await redeemCode(service, app, await codeFor(service, app, user, { browser }));
  const other = await service.createUser([own.id]);
  const page = await browser.open(authorizeUrl(service, app, { prompt: "login" }));
  await browser.signIn(page, other);
  const { status } = await fetch(`${service.url}/v1/organization`, {
    headers: { authorization: `Bearer ${first.body.access_token}` },
  });
  t.is(status, 200);
});

test.serial("max_age asks for the password if the sign-in is older", async (t) => {
  const browser = await signedIn();
  const url = authorizeUrl(service, app, { scope: "openid links:read", max_age: "60" });
  t.is((await browser.open(url)).html.querySelector("#password"), null);
  advanceClock(61_000);
  t.truthy((await browser.open(url)).html.querySelector("#password"));
  const zero = authorizeUrl(service, app, { scope: "openid links:read", max_age: "0" });
  t.truthy((await browser.open(zero)).html.querySelector("#password"));
});

test.serial("a session expires after 7 days without use", async (t) => {
  const browser = await signedIn();
  advanceClock(8 * 24 * 3600_000);
  const page = await browser.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"));
  t.regex((await openConsent(browser, user, authorizeUrl(service, app))).text, /Allow access\?/);
});

test.serial("a consent page expires after 15 minutes", async (t) => {
  const browser = await signedIn();
  const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  advanceClock(16 * 60_000);
  const answer = await sendForm(browser, page, { decision: "allow", organization_id: own.id });
  t.is(answer.status, 400);
  t.is(answer.headers.get("location"), null);
});
