import type { Page } from "playwright-core";
import { openPage, useChromium } from "../harness/browser/chromium.ts";
import { press } from "../harness/browser/page-actions.ts";
import { startCallbackServer } from "../harness/callback.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { freePort } from "../harness/program.ts";
import { providerSettings } from "../harness/providers/identity-provider.ts";
import { startOidcProvider } from "../harness/providers/oidc-identity-provider.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";

const port = await freePort();
const service = await startTestService(providerSettings(`http://localhost:${port}`));
const provider = await startOidcProvider(service, port);
const callback = await startCallbackServer();
const { app, own } = await createApp(service, ["http://127.0.0.1/callback"]);
const inChromium = useChromium();

/** Signs in at the provider. */
async function signInThere(page: Page, name: string) {
  await page.waitForURL(`${provider.issuer}/**`);
  await page.fill("[name=username]", name);
  await page.keyboard.press("Enter");
}

/** Opens a page of the app, on another origin, which opens an authorization in a popup. */
async function openPopup(page: Page): Promise<Page> {
  await page.goto(callback.url.replace("/callback", "/opener"));
  await page.evaluate(`addEventListener("message", ({ data }) => { window.answer = data; })`);
  const url = authorizeUrl(service, app, { redirect_uri: callback.url });
  const [popup] = await Promise.all([
    page.waitForEvent("popup"),
    page.evaluate(`void (window.popup = open(${JSON.stringify(url)}, "authorization", "popup"))`),
  ]);
  return popup;
}

inChromium("a popup stays connected across SSO, and shares the dashboard's session", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  await page.goto(`${service.url}/auth/sso`);
  await signInThere(page, "lin");
  await page.waitForURL(`${service.url}/dashboard/**`);
  const lin = await service.storage.accounts.findByUsername("lin");
  await service.storage.organizations.addMember(own.id, lin?.id as string, "member", OPERATOR);
  await page.context().clearCookies({ name: /^session/ });

  const popup = await openPopup(page);
  await popup.getByLabel("Username").waitFor();
  t.false(await page.evaluate<boolean>("popup.closed"), "on the sign-in page");
  await popup.getByRole("link", { name: "Continue with Example ID" }).click();
  await popup.getByRole("heading", { name: /^Allow / }).waitFor();
  t.false(await page.evaluate<boolean>("popup.closed"), "the opener still has the popup");
  await press(popup, "Allow");
  await page.waitForFunction("window.answer");
  for (const expression of ["window.answer", "popup.location.href"])
    t.regex(await page.evaluate<string>(expression), /\/callback\?code=/);
  const account = `${service.url}/dashboard/account`;
  await page.goto(account);
  t.is(page.url(), account, "also in the dashboard");
  t.deepEqual(complaints, []);
});

inChromium("a popup on any other page is disconnected from its opener", async (t, browser) => {
  const { page } = await openPage(browser);
  const popup = await openPopup(page);
  await popup.goto(`${service.url}/auth/login`);
  await page.waitForFunction("popup.closed");
  t.pass();
});
