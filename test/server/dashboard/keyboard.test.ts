import test from "ava";
import * as oidc from "openid-client";
import type { Page } from "playwright-core";
import { OPERATOR } from "../../../resources/events/types.ts";
import { openPage, tabTo, useChromium } from "../../harness/browser/chromium.ts";
import { startCallbackServer } from "../../harness/callback.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { discover } from "../../harness/clients/flow.ts";
import { isAcceptedByApi, postAsClient } from "../../harness/clients/oauth.ts";
import { startWithProvider } from "../../harness/providers/identity-provider.ts";
import type { TestOrganization } from "../../harness/service.ts";

export const stage = "browser";

const { service, close } = await startWithProvider();
const { url: CALLBACK, ...callbacks } = await startCallbackServer();
const app = await service.createOrganization("Third Party & Co");
await service.storage.clients.setRedirectUris(app.id, ["http://127.0.0.1/callback"], OPERATOR);
test.after.always(async () => {
  callbacks.close();
  await close();
});

const inChromium = useChromium();

/** How a user copies a secret, with and without JavaScript. */
const COPYING: Record<string, (page: Page, name: string) => Promise<string>> = {
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
    if (await row.getByRole("button").isVisible()) throw new Error("a button without effect is shown");
    return (await row.locator("code").textContent()) as string;
  },
};

const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true }).first().click();
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const heading = (page: Page) => page.locator("h1").textContent();

for (const [how, copy] of Object.entries(COPYING)) {
  const javaScriptEnabled = how === "with JavaScript";

  inChromium(`${how}, a user can go from registration to revoking an app`, async (t, browser) => {
    const { page, complaints } = await openPage(browser, {
      javaScriptEnabled,
      permissions: javaScriptEnabled ? ["clipboard-read", "clipboard-write"] : [],
    });
    const username = `walker-${javaScriptEnabled}`;

    // Register and create an organization.
    await page.goto(`${service.url}/dashboard`);
    await link(page, "Create an account");
    await page.getByLabel("Username").fill(username);
    await page.getByLabel("Password").fill("correct horse battery staple");
    await press(page, "Create account");
    t.is(await heading(page), `${username}'s organization`);
    await page.locator("summary", { hasText: "Organization:" }).click();
    await link(page, "New organization");
    await page.getByLabel("Name").fill("Ängström & Söhne");
    await press(page, "Create organization");
    t.is(await heading(page), "Ängström & Söhne");

    // Upgrade and copy the secret.
    await link(page, "Upgrade to use the API");
    await press(page, "Upgrade to Growth");
    const client = {
      id: new URL(page.url()).pathname.split("/")[3] as string,
      name: "Ängström & Söhne",
      clientId: await copy(page, "client ID"),
      clientSecret: await copy(page, "client secret"),
    } satisfies TestOrganization;

    // Get a token with it, and create a link with the token.
    const config = await discover(service, client);
    const { access_token } = await oidc.clientCredentialsGrant(config, { scope: "links:write" });
    await apiAt(service.url, access_token).createLink({ title: `Spring ${how}` });
    await link(page, "Links");
    t.is(await page.getByRole("row", { name: `Spring ${how}` }).count(), 1, "the dashboard lists the link");
    await page.getByLabel("Shorten a URL").fill("https://example.com/autumn");
    await press(page, "Create link");
    const made = await page.locator(".copyable code").first().textContent();
    t.is(
      (await fetch(made as string, { redirect: "manual" })).headers.get("location"),
      "https://example.com/autumn",
    );

    // Authorize a third-party app with code and PKCE, using the same session.
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
    t.regex((await page.textContent("main")) ?? "", /127\.0\.0\.1.*Third Party & Co.*Ängström & Söhne/s);
    await press(page, "Allow");
    await page.waitForURL(`${CALLBACK}?**`);
    const tokens = await oidc.authorizationCodeGrant(thirdParty, new URL(page.url()), {
      pkceCodeVerifier,
      expectedState,
    });
    t.true(await isAcceptedByApi(service, tokens.access_token));

    // The app is listed under Apps and revoked there.
    await page.goto(`${service.url}/dashboard`);
    t.is(await heading(page), "Ängström & Söhne", "the organization viewed last");
    await link(page, "Apps");
    const row = page.getByRole("row", { name: /Third Party & Co/ });
    t.regex((await row.textContent()) ?? "", new RegExp(`View links and their clicks.*by ${username}`));
    await row.getByRole("link", { name: /^Revoke/ }).click();
    t.is(await heading(page), "Revoke access?");
    await press(page, "Revoke access");
    await page.getByText("Access revoked").waitFor();
    t.false(await isAcceptedByApi(service, tokens.access_token));
    const refresh = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    t.is((await postAsClient(service, "token", app, refresh)).body.error, "invalid_grant");

    t.deepEqual(complaints, []);
    await page.context().close();
  });
}

inChromium("after a rejected form, the first invalid field has the focus", async (t, browser) => {
  const { page } = await openPage(browser);
  const owner = await service.createUser([]);
  const { id } = (await service.storage.organizations.create("Team", "free", OPERATOR, owner.id))
    .organization;
  await page.goto(`${service.url}/dashboard/organizations/${id}/settings`);
  await page.getByLabel("Username").fill(owner.username);
  await page.getByLabel("Password").fill(owner.password);
  await press(page, "Sign in");
  await page.getByLabel("Organization name").fill(" ");
  await press(page, "Rename organization");
  await page.getByText("Must be 1 to 100 characters long.").waitFor();
  t.is(await page.locator(":focus").getAttribute("name"), "name");
  await page.context().close();
});

inChromium("a user can sign in with SSO, sign out and sign in again", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const names = [];
  for (let round = 0; round < 2; round++) {
    await page.goto(`${service.url}/dashboard/account`);
    await link(page, "Continue with Example ID");
    t.is(await heading(page), "Your account", "back at the requested page");
    const account = page.locator("summary", { hasText: "Account:" });
    names.push(await account.textContent());
    await account.click();
    await press(page, "Sign out");
    t.is(await heading(page), "Sign in");
  }
  t.is(names[0], names[1], "the same user");
  t.deepEqual(complaints, []);
  await page.context().close();
});

inChromium("the content and the menus are reachable with the keyboard only", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const user = await service.createUser([app.id]);
  await page.goto(`${service.url}/dashboard`);
  await page.getByLabel("Username").fill(user.username);
  await page.getByLabel("Password").fill(user.password);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".sections");

  await page.keyboard.press("Tab");
  const skip = page.locator(":focus");
  t.is(await skip.textContent(), "Skip to content");
  t.true(((await skip.boundingBox())?.y ?? -1) >= 0, "visible while focused");
  await page.keyboard.press("Enter");
  t.is(await page.locator(":focus").getAttribute("id"), "content");

  // Begins above the content again.
  await page.goto(`${service.url}/dashboard`);
  await tabTo(page, `Account: ${user.username}`);
  const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
  t.is(outline, "solid", "focus is visible");
  await page.keyboard.press("Enter");
  t.true(await page.getByRole("link", { name: "Your account" }).isVisible());
  await page.keyboard.press("Tab");
  await page.keyboard.press("Escape");
  t.false(await page.getByRole("link", { name: "Your account" }).isVisible());
  t.is(
    await page.evaluate<string>("document.activeElement.localName"),
    "summary",
    "focus returns to the menu",
  );
  t.deepEqual(complaints, []);
  await page.context().close();
});

inChromium("leaving is confirmed on a page of its own, with the keyboard only", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const user = await service.createUser([app.id]);
  const base = `${service.url}/dashboard/organizations/${app.id}`;
  await page.goto(`${base}/settings`);
  await page.getByLabel("Username").fill(user.username);
  await page.getByLabel("Password").fill(user.password);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".sections");
  for (const [choice, path] of [
    ["Cancel", `${base}/settings`],
    ["Leave organization", `${service.url}/dashboard?done=left`],
  ] as const) {
    await tabTo(page, "Leave organization");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${base}/members/me/delete`);
    t.is(await heading(page), "Leave organization?");
    await tabTo(page, choice);
    await page.keyboard.press("Enter");
    await page.waitForURL(path);
  }
  t.deepEqual(complaints, []);
  await page.context().close();
});
