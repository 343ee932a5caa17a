import test from "ava";
import * as oidc from "openid-client";
import type { Page } from "playwright-core";
import { OPERATOR } from "../../../resources/events.ts";
import { apiAt } from "../../harness/api.ts";
import { startCallbackServer } from "../../harness/callback.ts";
import { openPage, tabTo, useChromium } from "../../harness/chromium.ts";
import { discover } from "../../harness/flow.ts";
import { startWithProvider } from "../../harness/identity-provider.ts";
import { ask, opensApi } from "../../harness/oauth.ts";
import type { TestOrganization } from "../../harness/service.ts";

const { service, close } = await startWithProvider();
const { url: CALLBACK, ...callbacks } = await startCallbackServer();
const app = await service.createOrganization("Third Party & Co");
await service.storage.clients.setRedirectUris(app.id, ["http://127.0.0.1/callback"], OPERATOR);
test.after.always(async () => {
  callbacks.close();
  await close();
});

const inChromium = useChromium();

/** How a person takes a secret along, with and without JavaScript. */
const TAKING: Record<string, (page: Page, name: string) => Promise<string>> = {
  async "with JavaScript"(page, name) {
    const button = page.getByRole("button", { name: `Copy ${name}`, exact: true });
    const copied = page.locator(`[data-copy="${await button.getAttribute("data-copy")}"]`, {
      hasText: "Copied",
    });
    await button.click();
    await copied.waitFor();
    return page.evaluate<string>("navigator.clipboard.readText()");
  },
  async "without JavaScript"(page, name) {
    const row = page.locator(".copyable", { hasText: `Copy ${name}` });
    if (await row.getByRole("button").isVisible()) throw new Error("a button that can do nothing is shown");
    return (await row.locator("code").textContent()) as string;
  },
};

const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true }).click();
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const heading = (page: Page) => page.locator("h1").textContent();

for (const [how, take] of Object.entries(TAKING)) {
  const javaScriptEnabled = how === "with JavaScript";

  inChromium(`${how}, a person goes from the registration to a revoked app`, async (t, browser) => {
    const { page, complaints } = await openPage(browser, {
      javaScriptEnabled,
      permissions: javaScriptEnabled ? ["clipboard-read", "clipboard-write"] : [],
    });
    const username = `walker-${javaScriptEnabled}`;

    // Register, make an organization.
    await page.goto(`${service.url}/dashboard`);
    await link(page, "Create an account");
    await page.getByLabel("Username").fill(username);
    await page.getByLabel("Password").fill("correct horse battery staple");
    await press(page, "Create the account");
    t.is(await heading(page), `${username}'s organization`);
    await page.locator("summary", { hasText: "Organization:" }).click();
    await link(page, "New organization");
    await page.getByLabel("Name").fill("Ängström & Söhne");
    await press(page, "Create organization");
    t.is(await heading(page), "Ängström & Söhne");

    // Upgrade, and take the secret along.
    await link(page, "Choose a plan");
    await press(page, "Upgrade to Growth");
    const client = {
      id: new URL(page.url()).pathname.split("/")[3] as string,
      name: "Ängström & Söhne",
      clientId: await take(page, "the client id"),
      clientSecret: await take(page, "the client secret"),
    } satisfies TestOrganization;

    // A token with it, and a link with that.
    const config = await discover(service, client);
    const { access_token } = await oidc.clientCredentialsGrant(config, { scope: "links:write" });
    await apiAt(service.url, access_token).createLink({ title: `Spring ${how}` });
    await link(page, "Links");
    t.is(await page.getByRole("row", { name: `Spring ${how}` }).count(), 1, "the link is in the dashboard");
    await page.getByLabel("Shorten an address").fill("https://example.com/autumn");
    await press(page, "Create link");
    const made = await page.locator(".copyable code").first().textContent();
    t.is(
      (await fetch(made as string, { redirect: "manual" })).headers.get("location"),
      "https://example.com/autumn",
    );

    // A third-party app by code and PKCE. Who is signed in here is signed in there.
    const thirdParty = await discover(service, app);
    const pkceCodeVerifier = oidc.randomPKCECodeVerifier();
    const expectedState = oidc.randomState();
    const request = oidc.buildAuthorizationUrl(thirdParty, {
      redirect_uri: CALLBACK,
      scope: "links:read",
      code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: "S256",
      state: expectedState,
    });
    await page.goto(request.href);
    t.is(await heading(page), "Allow access?");
    t.regex((await page.textContent("main")) ?? "", /Third Party & Co.*127\.0\.0\.1.*Ängström & Söhne/s);
    await press(page, "Allow");
    await page.waitForURL(`${CALLBACK}?**`);
    const tokens = await oidc.authorizationCodeGrant(thirdParty, new URL(page.url()), {
      pkceCodeVerifier,
      expectedState,
    });
    t.true(await opensApi(service, tokens.access_token));

    // It is under Apps, and is revoked there.
    await page.goto(`${service.url}/dashboard`);
    t.is(await heading(page), "Ängström & Söhne", "the organization that was looked at last");
    await link(page, "Apps");
    const row = page.getByRole("row", { name: /Third Party & Co/ });
    t.regex((await row.textContent()) ?? "", new RegExp(`${username}.*links:read`));
    await row.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByText("The app has lost its access").waitFor();
    t.false(await opensApi(service, tokens.access_token));
    const refresh = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    t.is((await ask(service, "token", app, refresh)).body.error, "invalid_grant");

    t.deepEqual(complaints, []);
    await page.context().close();
  });
}

inChromium("a person signs in with the external identity provider, out, and in again", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const names = [];
  for (let round = 0; round < 2; round++) {
    await page.goto(`${service.url}/dashboard/account`);
    await link(page, "Continue with Example ID");
    t.is(await heading(page), "Your account", "back where the person wanted to go");
    const account = page.locator("summary", { hasText: "Account:" });
    names.push(await account.textContent());
    await account.click();
    await press(page, "Sign out");
    t.is(await heading(page), "Sign in");
  }
  t.is(names[0], names[1], "one person");
  t.deepEqual(complaints, []);
  await page.context().close();
});

inChromium(
  "with the keyboard alone the content, the menus and what they hold are reached",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser);
    const user = await service.createUser([app.id]);
    await page.goto(`${service.url}/dashboard`);
    await page.getByLabel("Username").fill(user.username);
    await page.getByLabel("Password").fill(user.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".sections");

    await page.keyboard.press("Tab");
    const skip = page.locator(":focus");
    t.is(await skip.textContent(), "Skip to the content");
    t.true(((await skip.boundingBox())?.y ?? -1) >= 0, "it is seen while it has the focus");
    await page.keyboard.press("Enter");
    t.is(await page.locator(":focus").getAttribute("id"), "content");

    await page.reload();
    await tabTo(page, `Account: ${user.username}${user.username.slice(0, 1).toUpperCase()}`);
    const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
    t.is(outline, "solid", "what has the focus is seen to have it");
    await page.keyboard.press("Enter");
    t.true(await page.getByRole("link", { name: "Your account" }).isVisible());
    await page.keyboard.press("Tab");
    await page.keyboard.press("Escape");
    t.false(await page.getByRole("link", { name: "Your account" }).isVisible());
    t.is(await page.evaluate<string>("document.activeElement.localName"), "summary", "back where it was");
    t.deepEqual(complaints, []);
    await page.context().close();
  },
);
