import test, { type ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { OPERATOR } from "../../../resources/events/types.ts";
import { openPage, useChromium } from "../../harness/browser/chromium.ts";
import { startCallbackServer } from "../../harness/callback.ts";
import { authorizeUrl } from "../../harness/clients/oauth.ts";
import { freePort } from "../../harness/port.ts";
import { providerSettings } from "../../harness/providers/identity-provider.ts";
import { startOidcProvider } from "../../harness/providers/oidc-identity-provider.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const stage = "browser";

const port = await freePort();
const service = await startTestService(providerSettings(`http://localhost:${port}`));
const provider = await startOidcProvider(service, port);
const callback = await startCallbackServer();
const app = await service.createOrganization("Acme");
const own = await service.createOrganization();
const user = await service.createUser([own.id]);
await service.storage.clients.setRedirectUris(app.id, ["http://127.0.0.1/callback"], OPERATOR);

const inChromium = useChromium();
test.after.always(async () => {
  callback.close();
  await service.close();
  await provider.stop();
});

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

async function signIn(page: Page, { username, password }: TestUser) {
  await page.getByLabel("Username").fill(username);
  await page.getByLabel("Password").fill(password);
  await press(page, "Sign in");
}

/** Opens a page of the app, on another origin, which opens an authorization in a popup. */
async function openPageWithPopup(browser: Browser, parameters: Record<string, string> = {}) {
  const { page, complaints } = await openPage(browser);
  return { page, complaints, popup: await openPopup(page, parameters) };
}

async function openPopup(page: Page, parameters: Record<string, string> = {}): Promise<Page> {
  await page.goto(callback.url.replace("/callback", "/opener"));
  await page.evaluate(`addEventListener("message", ({ data }) => { window.answer = data; })`);
  const url = authorizeUrl(service, app, { redirect_uri: callback.url, ...parameters });
  const [popup] = await Promise.all([
    page.waitForEvent("popup"),
    page.evaluate(`void (window.popup = open(${JSON.stringify(url)}, "authorization", "popup"))`),
  ]);
  return popup;
}

/** Asserts that the opener keeps its popup up to the consent page, and gets the response from it. */
async function assertConnected(t: ExecutionContext, page: Page, popup: Page) {
  await popup.getByText("Allow access?").waitFor();
  t.false(await page.evaluate<boolean>("popup.closed"), "the opener still has the popup");
  await press(popup, "Allow");
  await page.waitForFunction("window.answer");
  t.regex(await page.evaluate<string>("window.answer"), /\/callback\?code=/);
  t.regex(await page.evaluate<string>("popup.location.href"), /\/callback\?code=/);
}

inChromium("an app that opens the authorization in a popup gets the response from it", async (t, browser) => {
  const { page, popup, complaints } = await openPageWithPopup(browser);
  await popup.getByLabel("Username").waitFor();
  t.false(await page.evaluate<boolean>("popup.closed"), "on the sign-in page");
  await signIn(popup, { ...user, password: "not the password" });
  await popup.getByRole("alert").waitFor();
  t.false(await page.evaluate<boolean>("popup.closed"), "after a wrong password");
  await signIn(popup, user);
  await assertConnected(t, page, popup);
  t.deepEqual(complaints, []);
  await page.context().close();
});

inChromium("a popup stays connected to its opener across SSO", async (t, browser) => {
  const { page } = await openPage(browser);
  await page.goto(`${service.url}/auth/sso`);
  await page.fill("[name=username]", "lin");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${service.url}/dashboard/**`);
  const lin = await service.storage.accounts.findByUsername("lin");
  await service.storage.organizations.addMember(own.id, lin?.id as string, "member", OPERATOR);
  await page.context().clearCookies({ name: "session" });

  const popup = await openPopup(page);
  await popup.getByRole("link", { name: "Continue with Example ID" }).click();
  await assertConnected(t, page, popup);
  await page.context().close();
});

inChromium("a popup stays connected to its opener when another user signs in", async (t, browser) => {
  const { page } = await openPage(browser);
  await page.goto(`${service.url}/auth/login`);
  await signIn(page, await service.createUser([own.id]));
  await page.waitForURL("**/dashboard/**");

  const popup = await openPopup(page, { prompt: "login" });
  await signIn(popup, user);
  await popup.getByText(user.username).waitFor();
  await assertConnected(t, page, popup);
  await page.context().close();
});

inChromium("a popup on any other page is disconnected from its opener", async (t, browser) => {
  const { page, popup } = await openPageWithPopup(browser);
  await popup.goto(`${service.url}/auth/login`);
  await page.waitForFunction("popup.closed");
  t.pass();
  await page.context().close();
});
