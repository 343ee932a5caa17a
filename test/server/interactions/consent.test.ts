import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { authorizeUrl, createApp, openConsent, redeemCode, sendForm } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const ENCRYPTION_KEY = Buffer.alloc(32, 5).toString("base64url");
const service = await startTestService({ DATABASE_URL: database.url, ENCRYPTION_KEY });

const { app, own, user } = await createApp(service);

test.after.always(async () => {
  await knex.destroy();
  await service.close();
  await database.drop();
});

const knex = knexFactory(knexConfig(database.url));

test.serial("the row of a pending authorization contains no id that opens or resumes it", async (t) => {
  const { app } = await createApp(service);
  const page = await new TestBrowser(service.url).open(authorizeUrl(service, app));
  const [, id = ""] = /\/interaction\/([A-Za-z0-9_-]+)/.exec(page.url) ?? [];
  t.true(id.length >= 20);
  const rows = await knex("interactions").select();
  t.is(rows.length, 1);
  t.false(JSON.stringify(rows).includes(id));
});

test.serial("the row of a signed-in user's authorization contains no id of the session either", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
  const page = await openConsent(browser, user, authorizeUrl(service, app));
  t.regex(page.url, /\/interaction\//);
  const cookies = await browser.jar.getCookies(service.url);
  const session = cookies.find(({ key }) => key === "session")?.value ?? "";
  t.true(session.length >= 20);
  const rows = await knex("interactions").select();
  t.true(rows.length > 0);
  t.false(JSON.stringify(rows).includes(session));
});

const ALLOW = { decision: "allow", organization_id: own.id };

async function openConsentPage() {
  const browser = new TestBrowser(service.url);
  return { browser, page: await openConsent(browser, user, authorizeUrl(service, app)) };
}

/** Returns whether the consent page still leads to a code. */
async function canStillAllow(browser: TestBrowser, page: Page): Promise<boolean> {
  return new URL((await browser.press(page, "Allow")).url).searchParams.has("code");
}

const INVALID_TOKENS: Record<string, string | undefined> = {
  "no CSRF token": undefined,
  "an empty CSRF token": "",
  "an invalid CSRF token": "x".repeat(43),
  "a truncated CSRF token": "AAAA",
};

for (const [what, csrf] of Object.entries(INVALID_TOKENS)) {
  test(`a consent with ${what} is rejected and changes nothing`, async (t) => {
    const { browser, page } = await openConsentPage();
    const { status, headers } = await sendForm(browser, page, { ...ALLOW, csrf });
    t.is(status, 400);
    t.is(headers.get("location"), null);
    t.true(await canStillAllow(browser, page));
  });
}

test("the CSRF token of one authorization is rejected for another", async (t) => {
  const [first, second] = [await openConsentPage(), await openConsentPage()];
  const csrf = first.page.html.querySelector("[name=csrf]")?.attributes.value;
  t.is((await sendForm(second.browser, second.page, { ...ALLOW, csrf })).status, 400);
});

test("a sign-in without a CSRF token is rejected even with the correct password", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  const { username, password } = user;
  t.is((await sendForm(browser, page, { username, password, csrf: undefined })).status, 400);
  t.truthy((await browser.open(page.url)).html.querySelector("#password"));
});

for (const headers of [
  { "sec-fetch-site": "cross-site" },
  { "sec-fetch-site": "same-site" },
  { origin: "https://evil.example" },
  { origin: "null" },
]) {
  test(`a consent with ${JSON.stringify(headers)} is rejected even with the CSRF token`, async (t) => {
    const { browser, page } = await openConsentPage();
    const action = `${page.url}/consent`;
    const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
    const answer = await fetch(action, {
      method: "POST",
      headers: { cookie: await browser.jar.getCookieString(action), ...headers } as Record<string, string>,
      body: new URLSearchParams({ ...ALLOW, csrf }),
      redirect: "manual",
    });
    t.is(answer.status, 403);
    t.regex(await answer.text(), /This request came from another site/);
    t.true(await canStillAllow(browser, page));
  });
}

test("a consent sent with GET approves nothing, and shows the page again", async (t) => {
  const { browser, page } = await openConsentPage();
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const query = new URLSearchParams({ csrf, ...ALLOW });
  const answer = await browser.open(`${page.url}/consent?${query}`);
  t.is(answer.url, page.url);
  t.is(answer.html.querySelector("h1")?.text, "Allow access?");
  t.true(await canStillAllow(browser, page));
});

test("another browser can neither open nor approve an authorization", async (t) => {
  const { browser, page } = await openConsentPage();
  const stranger = new TestBrowser(service.url);
  const ownConsent = await openConsent(stranger, user, authorizeUrl(service, app));
  for (const other of [new TestBrowser(service.url), stranger]) {
    t.is((await other.open(page.url)).status, 400);
    const { status, headers } = await sendForm(other, page, ALLOW);
    t.is(status, 400);
    t.is(headers.get("location"), null);
  }
  t.true(await canStillAllow(stranger, ownConsent));
  t.true(await canStillAllow(browser, page));
});

test("another browser can't resume an approved authorization", async (t) => {
  const { browser, page } = await openConsentPage();
  const allowed = await sendForm(browser, page, ALLOW);
  const resume = String(allowed.headers.get("location"));
  t.regex(resume, /\/oauth\/authorize\/[\w-]+$/);
  for (const other of [new TestBrowser(service.url), (await openConsentPage()).browser]) {
    const answer = await other.open(resume);
    t.is(answer.status, 400);
    t.false(answer.url.includes("code="));
  }
  t.true((await browser.open(resume)).url.includes("code="));
});

test("a modified interaction cookie is rejected", async (t) => {
  const { browser, page } = await openConsentPage();
  const cookie = await browser.jar.getCookieString(page.url);
  for (const changed of [
    cookie.replace(/interaction\.sig=[^;]+/, "interaction.sig=AAAA"),
    cookie.replace(/interaction\.sig=[^;]+;? ?/, ""),
    cookie.replace(/interaction=[^;]+/, "interaction=AAAA"),
  ]) {
    t.not(changed, cookie);
    t.is((await fetch(page.url, { headers: { cookie: changed } })).status, 400);
  }
});

test("a completed authorization can't be opened, submitted or resumed again", async (t) => {
  const { browser, page } = await openConsentPage();
  const resume = String((await sendForm(browser, page, ALLOW)).headers.get("location"));
  const cookies = await browser.jar.getCookieString(resume);
  t.true((await browser.open(resume)).url.includes("code="));
  const again = await fetch(resume, { headers: { cookie: cookies }, redirect: "manual" });
  t.is(again.status, 400);
  t.is((await browser.open(page.url)).status, 400);
  t.is((await sendForm(browser, page, ALLOW)).status, 400);
});

test("resuming one approval concurrently yields one code", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { browser, page } = await openConsentPage();
    const resume = String((await sendForm(browser, page, ALLOW)).headers.get("location"));
    const cookie = await browser.jar.getCookieString(resume);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => fetch(resume, { headers: { cookie }, redirect: "manual" })),
    );
    const codes = answers.flatMap(({ headers }) => {
      const location = URL.parse(headers.get("location") ?? "");
      return location?.searchParams.get("code") ?? [];
    });
    t.is(codes.length, 1);
    for (const { status } of answers) t.true(status === 303 || status === 400, String(status));
    t.is((await redeemCode(service, app, String(codes[0]))).status, 200);
  }
});

test("submitting one consent form concurrently yields one code", async (t) => {
  const { browser, page } = await openConsentPage();
  const answers = await Promise.all(Array.from({ length: 10 }, () => sendForm(browser, page, ALLOW)));
  for (const { status } of answers) t.true(status === 303 || status === 400, String(status));
  const resumes = answers.flatMap(({ headers }) => headers.get("location") ?? []);
  t.true(resumes.length >= 1);
  const cookie = await browser.jar.getCookieString(String(resumes[0]));
  const ends = await Promise.all(
    resumes.map((url) => fetch(url, { headers: { cookie }, redirect: "manual" })),
  );
  t.is(ends.filter(({ headers }) => headers.get("location")?.includes("code=")).length, 1);
});

test("consent can't be submitted before signing in", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  const form = page.html.querySelector("form");
  form?.setAttribute("action", String(form.attributes.action).replace("sign-in", "consent"));
  t.is((await sendForm(browser, page, ALLOW)).status, 400);
});

test("any decision other than allow denies access", async (t) => {
  for (const decision of ["cancel", "", "ALLOW", "yes", undefined]) {
    const { browser, page } = await openConsentPage();
    const { headers } = await sendForm(browser, page, { ...ALLOW, decision });
    const end = await browser.open(String(headers.get("location")));
    t.is(new URL(end.url).searchParams.get("error"), "access_denied", String(decision));
  }
});

test("a new authorization can be started after a cancellation", async (t) => {
  const { browser, page } = await openConsentPage();
  await browser.press(page, "Cancel");
  t.true(await canStillAllow(browser, await browser.open(authorizeUrl(service, app, { prompt: "consent" }))));
});
