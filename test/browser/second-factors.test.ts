import type { Browser, Page } from "playwright-core";
import { addAuthenticator } from "../harness/browser/authenticator.ts";
import { openPage, useChromium } from "../harness/browser/chromium.ts";
import { fill, signIn as fillAndSignIn, press, waitForError } from "../harness/browser/page-actions.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { advanceClock } from "../harness/clock.ts";
import { startServiceWithDatabase } from "../harness/database/service.ts";
import type { TestUser } from "../harness/service.ts";

const { service, knex } = await startServiceWithDatabase();
const inChromium = useChromium();

const ACCOUNT = "/dashboard/account";

async function signIn(page: Page, user: TestUser): Promise<void> {
  await page.goto(ACCOUNT);
  await fillAndSignIn(page, user);
}

/** Opens a page with an authenticator, in which a user is signed in. */
async function openWithAuthenticator(browser: Browser, user: TestUser) {
  const opened = await openPage(browser, { baseURL: service.url });
  const authenticator = await addAuthenticator(opened.page);
  await signIn(opened.page, user);
  return { ...opened, authenticator };
}

const signOut = (page: Page) => page.context().clearCookies();

/** Signs the user out, and in again with the passkey of the authenticator. */
async function useOnlyPasskey(page: Page): Promise<void> {
  await signOut(page);
  await page.goto("/auth/login");
  await press(page, "Sign in with a passkey");
}

/** Adds a passkey on the account page. Resolves to the recovery codes that are shown. */
async function addPasskey(page: Page, name: string, query = ""): Promise<string[]> {
  await page.goto(`${ACCOUNT}/passkeys/new${query}`);
  await page.locator("form[data-passkey] [name=name]").fill(name);
  await press(page, "Add passkey");
  await page.waitForURL(/recovery-codes|done=passkey-added/);
  return page.locator(".codes code").allTextContents();
}

inChromium("a passkey signs in without a password, and counts as a recent sign-in", async (t, browser) => {
  const user = await service.createUser([]);
  const { page, complaints, authenticator } = await openWithAuthenticator(browser, user);
  const codes = await addPasskey(page, "Work laptop", `?return_to=${ACCOUNT}/apps`);
  t.is(codes.length, 10);
  await page.getByRole("link", { name: "Continue" }).click();
  await page.waitForURL(/account\/apps$/);
  t.is((await authenticator.credentials()).length, 1);

  await useOnlyPasskey(page);
  await page.waitForURL(/\/dashboard/);
  await page.goto(ACCOUNT);
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
});

inChromium("after the password, a passkey or a recovery code is asked for", async (t, browser) => {
  const user = await service.createUser([]);
  const { page, authenticator } = await openWithAuthenticator(browser, user);
  const [code = ""] = await addPasskey(page, "Phone");

  await signOut(page);
  await signIn(page, user);
  await page.waitForURL(/second-factor/);
  await press(page, "Use a passkey");
  await page.waitForURL(new RegExp(`${ACCOUNT}$`));
  await page.getByText("Password + passkey").first().waitFor();

  await authenticator.setUserVerified(false);
  await useOnlyPasskey(page);
  await page.locator("form[data-passkey] [role=alert]").waitFor();
  t.true(page.url().includes("/auth/login"), "without a password, the authenticator must verify the user");

  await signIn(page, user);
  await page.waitForURL(/second-factor/);
  await page.getByRole("link", { name: "Use a recovery code" }).click();
  await fill(page, { recovery_code: code });
  await press(page, "Continue");
  await page.waitForURL(new RegExp(`${ACCOUNT}$`));
  await page.getByText("9 unused codes").waitFor();
});

inChromium("a copied authenticator, whose signature counter is behind, is refused", async (t, browser) => {
  const user = await service.createUser([]);
  const { page, authenticator } = await openWithAuthenticator(browser, user);
  await addPasskey(page, "Security key");
  for (let use = 0; use < 2; use++) {
    await useOnlyPasskey(page);
    await page.waitForURL(/\/dashboard/);
  }
  await authenticator.setCounter(1);
  await useOnlyPasskey(page);
  await waitForError(page);
  t.is((await page.request.get("/dashboard/me")).status(), 401);
});

inChromium("an authenticator's response counts once, for the browser that asked", async (t, browser) => {
  const user = await service.createUser([]);
  const { page } = await openWithAuthenticator(browser, user);
  await addPasskey(page, "Phone");
  await signOut(page);
  await page.goto("/auth/login");
  // The test sends the response instead of the browser.
  await page.route(/\/auth\/passkey$/, (route) => route.abort());
  const [request] = await Promise.all([
    page.waitForRequest((one) => one.url().endsWith("/auth/passkey")),
    press(page, "Sign in with a passkey"),
  ]);
  const cookies = await page.context().cookies();
  const cookie = `browser=${cookies.find(({ name }) => name === "browser")?.value}`;
  const sent = new URLSearchParams(request.postData() ?? "");
  const send = async (headers: Record<string, string>, passkey = sent.get("passkey") ?? "") => {
    const body = new URLSearchParams({ passkey });
    return (await fetch(`${service.url}/auth/passkey`, { method: "POST", headers, body, redirect: "manual" }))
      .status;
  };
  for (const headers of [{ cookie: "browser=another" }, {}])
    t.is(await send(headers as Record<string, string>), 400, JSON.stringify(headers));
  const credential = JSON.parse(sent.get("passkey") ?? "");
  credential.response.userHandle = Buffer.from("usr_another").toString("base64url");
  t.is(await send({ cookie }, JSON.stringify(credential)), 400, "of another user");
  t.is(await send({ cookie }), 303);
  // As with an authenticator that counts nothing, so that only the challenge shows that it is the same response.
  await knex("passkeys").where({ user_id: user.id }).update({ counter: 0 });
  t.is(await send({ cookie }), 400);
});

inChromium("the server requires user verification, and a passkey of the account", async (t, browser) => {
  const [victim, attacker] = [await service.createUser([]), await service.createUser([])];
  const own = await openWithAuthenticator(browser, victim);
  await addPasskey(own.page, "Phone");

  const { page, authenticator } = await openWithAuthenticator(browser, attacker);
  await addPasskey(page, "Key");
  /** Uses a passkey with other options than the server's, and waits for the page that follows. */
  const useWith = async (options: string, button: string) => {
    await page.evaluate(`{ const { dataset } = document.querySelector("form[data-passkey]");
        dataset.options = JSON.stringify({ ...JSON.parse(dataset.options), ...${options} }); }`);
    const [answer] = await Promise.all([
      page.waitForResponse((one) => one.request().method() === "POST"),
      page.waitForEvent("load"),
      press(page, button),
    ]);
    return answer.status();
  };

  await signOut(page);
  await signIn(page, victim);
  await page.waitForURL(/second-factor/);
  t.is(await useWith("{ allowCredentials: [] }", "Use a passkey"), 400, "another user's passkey");
  t.is((await page.request.get("/dashboard/me")).status(), 401);

  await authenticator.setUserVerified(false);
  await page.goto("/auth/login");
  const unverified = '{ userVerification: "discouraged" }';
  t.is(await useWith(unverified, "Sign in with a passkey"), 400, "without a PIN or a biometric");
  t.is((await page.request.get("/dashboard/me")).status(), 401);
});

inChromium("an authorization continues after a sign-in with a passkey", async (t, browser) => {
  const { app, user } = await createApp(service);
  const { page } = await openWithAuthenticator(browser, user);
  await addPasskey(page, "Phone");
  await signOut(page);
  await page.goto(authorizeUrl(service, app));
  await press(page, "Sign in with a passkey");
  await page.getByRole("button", { name: "Allow" }).waitFor();
  t.regex(page.url(), /\/interaction\//);
});
