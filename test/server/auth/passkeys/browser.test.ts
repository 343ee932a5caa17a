import test from "ava";
import type { Page } from "playwright-core";
import { addAuthenticator } from "../../../harness/browser/authenticator.ts";
import { openPage, useChromium } from "../../../harness/browser/chromium.ts";
import { fill, press, waitForError } from "../../../harness/browser/page-actions.ts";
import { authorizeUrl, createApp } from "../../../harness/clients/oauth.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startTestService, type TestUser } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

const ACCOUNT = "/dashboard/account";

async function signIn(page: Page, { username, password }: TestUser, path = ACCOUNT): Promise<void> {
  await page.goto(path);
  await fill(page, { username, password });
  await press(page, "Sign in");
}

async function signOut(page: Page): Promise<void> {
  await page.context().clearCookies();
}

/** Adds a passkey on the account page. Resolves to the recovery codes that are shown. */
async function addPasskey(page: Page, name: string): Promise<string[]> {
  await page.goto(`${ACCOUNT}/passkeys/new`);
  await page.locator("form[data-passkey] [name=name]").fill(name);
  await press(page, "Add passkey");
  await page.waitForURL(/recovery-codes|done=passkey-added/);
  return page.locator(".codes code").allTextContents();
}

inChromium(
  "a passkey is added, signs in without a password, and counts as a recent sign-in",
  async (t, browser) => {
    const user = await service.createUser([]);
    const { page, complaints } = await openPage(browser, { baseURL: service.url });
    const authenticator = await addAuthenticator(page);
    await signIn(page, user);
    const codes = await addPasskey(page, "Work laptop");
    t.is(codes.length, 10);
    t.is((await authenticator.credentials()).length, 1);

    await signOut(page);
    await page.goto(`/auth/login?return_to=${ACCOUNT}`);
    await press(page, "Sign in with a passkey");
    await page.waitForURL(new RegExp(`${ACCOUNT}$`));
    await page.getByText("Work laptop", { exact: true }).first().waitFor();

    advanceClock(11 * 60_000);
    await page.goto(`${ACCOUNT}/passkeys/new`);
    await page.waitForURL(/\/auth\/login.*again=1/);
    await press(page, "Sign in with a passkey");
    await page.waitForURL(/passkeys\/new$/);

    await page.goto(ACCOUNT);
    await press(page, /^Remove passkey/);
    await page.waitForURL(/auth\/login/);
    t.deepEqual(complaints, [], "removing a passkey ends the session that it started");
    await press(page, "Sign in with a passkey");
    await waitForError(page);
    t.regex((await page.locator("[role=alert]").first().textContent()) ?? "", /wasn’t accepted/);
    await page.context().close();
  },
);

inChromium("after the password, a passkey or a recovery code is asked for", async (t, browser) => {
  const user = await service.createUser([]);
  const { page } = await openPage(browser, { baseURL: service.url });
  const authenticator = await addAuthenticator(page);
  await signIn(page, user);
  const [code = ""] = await addPasskey(page, "Phone");

  await signOut(page);
  await signIn(page, user);
  await page.waitForURL(/second-factor/);
  await press(page, "Use a passkey");
  await page.waitForURL(new RegExp(`${ACCOUNT}$`));
  await page.getByText("Password + passkey").first().waitFor();

  await signOut(page);
  await authenticator.setUserVerified(false);
  await page.goto("/auth/login");
  await press(page, "Sign in with a passkey");
  await page.locator("form[data-passkey] [role=alert]").waitFor();
  t.true(page.url().includes("/auth/login"), "without a password, the authenticator must verify the user");

  await signIn(page, user);
  await page.waitForURL(/second-factor/);
  await page.getByRole("link", { name: "Use a recovery code" }).click();
  await fill(page, { recovery_code: code });
  await press(page, "Continue");
  await page.waitForURL(new RegExp(`${ACCOUNT}$`));
  await page.getByText("9 unused codes").waitFor();
  await page.context().close();
});

inChromium("a copied authenticator, whose signature counter is behind, is refused", async (t, browser) => {
  const user = await service.createUser([]);
  const { page } = await openPage(browser, { baseURL: service.url });
  const authenticator = await addAuthenticator(page);
  await signIn(page, user);
  await addPasskey(page, "Security key");
  for (let use = 0; use < 2; use++) {
    await signOut(page);
    await page.goto("/auth/login");
    await press(page, "Sign in with a passkey");
    await page.waitForURL(/\/dashboard/);
  }
  await authenticator.setCounter(1);
  await signOut(page);
  await page.goto("/auth/login");
  await press(page, "Sign in with a passkey");
  await waitForError(page);
  t.is((await page.request.get("/dashboard/me")).status(), 401);
  await page.context().close();
});

inChromium(
  "the response of an authenticator is accepted once, and only from the browser that asked",
  async (t, browser) => {
    const user = await service.createUser([]);
    const { page } = await openPage(browser, { baseURL: service.url });
    await addAuthenticator(page);
    await signIn(page, user);
    await addPasskey(page, "Phone");
    await signOut(page);
    await page.goto("/auth/login");
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.url().endsWith("/auth/passkey")),
      press(page, "Sign in with a passkey"),
    ]);
    await page.waitForURL(/\/dashboard/);
    const body = request.postData() ?? "";
    const cookies = await page.context().cookies();
    const cookie = cookies
      .filter(({ name }) => name === "browser")
      .map(({ name, value }) => `${name}=${value}`)
      .join();
    for (const headers of [{ cookie }, { cookie: "browser=another" }, {}]) {
      const response = await fetch(`${service.url}/auth/passkey`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/x-www-form-urlencoded" },
        body,
        redirect: "manual",
      });
      t.is(response.status, 400, JSON.stringify(headers));
    }
    await page.context().close();
  },
);

inChromium("an authorization continues after a sign-in with a passkey", async (t, browser) => {
  const { app, user } = await createApp(service);
  const { page } = await openPage(browser, { baseURL: service.url });
  await addAuthenticator(page);
  await signIn(page, user);
  await addPasskey(page, "Phone");
  await signOut(page);
  await page.goto(authorizeUrl(service, app));
  await press(page, "Sign in with a passkey");
  await page.getByRole("button", { name: "Allow" }).waitFor();
  t.regex(page.url(), /\/interaction\//);
  await page.context().close();
});
