import test from "ava";
import * as oidc from "openid-client";
import type { Page } from "playwright-core";
import { OPERATOR } from "../../../resources/events/types.ts";
import { openPage, tabTo, useChromium } from "../../harness/browser/chromium.ts";
import { startCallbackServer } from "../../harness/callback.ts";
import { discover } from "../../harness/clients/flow.ts";
import { bearer, startTestService, type TestUser } from "../../harness/service.ts";

export const stage = "browser";

const service = await startTestService();
const app = await service.createOrganization("Acme & Søns");
const [first, second] = [
  await service.createOrganization("First"),
  await service.createOrganization("Second"),
];
const [ada, grace] = [await service.createUser([first.id, second.id]), await service.createUser([first.id])];
await service.storage.clients.setRedirectUris(app.id, ["http://127.0.0.1/callback"], OPERATOR);

const { url: CALLBACK, arrived, ...callbacks } = await startCallbackServer();
const inChromium = useChromium();
test.after.always(async () => {
  callbacks.close();
  await service.close();
});

async function startFlow(parameters: Record<string, string> = {}) {
  const config = await discover(service, app);
  const verifier = oidc.randomPKCECodeVerifier();
  const state = oidc.randomState();
  const url = oidc.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: "openid links:write",
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...parameters,
  });
  return { config, url: url.href, checks: { pkceCodeVerifier: verifier, expectedState: state } };
}

async function signIn(page: Page, { username, password }: Pick<TestUser, "username" | "password">) {
  await tabTo(page, "Username");
  await page.keyboard.press("Control+A");
  await page.keyboard.type(username);
  await page.keyboard.press("Tab");
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
}

async function press(page: Page, button: string) {
  await tabTo(page, button);
  await page.keyboard.press("Enter");
}

inChromium(
  "a user signs in and allows access with only the keyboard, and the app gets tokens",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser);
    const { config, url, checks } = await startFlow();
    await page.goto(url);
    t.is(await page.title(), "Sign in · linkgate");
    t.is(await page.locator(":focus").getAttribute("id"), "username", "the first field has the focus");

    await signIn(page, { ...ada, password: "not the password" });
    await page.waitForSelector("[role=alert]");
    t.is(await page.textContent("[role=alert]"), "Incorrect username or password.");
    t.is(await page.inputValue("#username"), ada.username);
    t.is(await page.inputValue("#password"), "");
    t.is(await page.locator(":focus").getAttribute("id"), "password", "the username is filled in");

    await page.keyboard.type(ada.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=Allow access?");
    t.regex((await page.textContent("main")) ?? "", /Acme & Søns is requesting access as/);
    await tabTo(page, "First");
    await page.keyboard.press("ArrowDown");
    await press(page, "Allow");
    await page.waitForSelector("text=Back in the app");
    t.true(page.url().startsWith(CALLBACK));

    const tokens = await oidc.authorizationCodeGrant(config, new URL(page.url()), checks);
    t.is(tokens.claims()?.sub, ada.id);
    const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(tokens.access_token) });
    t.is(((await answer.json()) as { id: string }).id, second.id, "the selected organization");
    t.deepEqual(complaints, []);
    await page.context().close();
  },
);

inChromium("Cancel redirects to the app without a code", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const { config, url, checks } = await startFlow();
  await page.goto(url);
  await signIn(page, grace);
  await page.waitForSelector("text=Allow access?");
  await press(page, "Cancel");
  await page.waitForSelector("text=Back in the app");
  const error = await t.throwsAsync(oidc.authorizationCodeGrant(config, new URL(page.url()), checks), {
    instanceOf: oidc.AuthorizationResponseError,
  });
  t.is(error?.error, "access_denied");
  t.deepEqual(complaints, []);
  await page.context().close();
});

inChromium("prompt=login lets another user sign in and signs the previous one out", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  await page.goto((await startFlow()).url);
  await signIn(page, ada);
  await page.waitForSelector("text=Allow access?");

  const { config, url, checks } = await startFlow({ prompt: "login" });
  await page.goto(url);
  await signIn(page, grace);
  await page.waitForSelector("text=Allow access?");
  t.true((await page.textContent("main"))?.includes(grace.username));
  await press(page, "Allow");
  await page.waitForSelector("text=Back in the app");
  const tokens = await oidc.authorizationCodeGrant(config, new URL(page.url()), checks);
  t.is(tokens.claims()?.sub, grace.id);
  await page.goto((await startFlow()).url);
  t.true((await page.textContent("main"))?.includes(grace.username), "the new user stays signed in");
  t.deepEqual(complaints, []);
  await page.context().close();
});

inChromium("every step works without JavaScript", async (t, browser) => {
  const { page } = await openPage(browser, { javaScriptEnabled: false });
  const { url } = await startFlow();
  await page.goto(url);
  await page.fill("#username", grace.username);
  await page.fill("#password", grace.password);
  await page.click("button");
  await page.click("text=Allow >> nth=-1");
  await page.waitForURL(`${CALLBACK}**`);
  t.regex(page.url(), /[?&]code=/);
  await page.context().close();
});

inChromium("a page on another origin can't frame our pages", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const { url } = await startFlow();
  await page.goto(CALLBACK.replace("/callback", "/frame"));
  const blocked = page.waitForEvent("console");
  await page.setContent(`<iframe src="${url.replaceAll("&", "&amp;")}"></iframe>`);
  await blocked;
  t.true(page.frames().every((frame) => !frame.url().startsWith(service.url)));
  t.true(
    complaints.some((complaint) => /frame/i.test(complaint)),
    complaints.join("\n"),
  );
  await page.context().close();
});

inChromium("the consent page can't be opened again after the approval", async (t, browser) => {
  const { page } = await openPage(browser);
  const { url } = await startFlow();
  await page.goto(url);
  await signIn(page, grace);
  await page.waitForSelector("text=Allow access?");
  const consent = page.url();
  await press(page, "Allow");
  await page.waitForSelector("text=Back in the app");
  const before = arrived.length;
  await page.goto(consent);
  t.is(await page.textContent("h1"), "This sign-in request has expired");
  t.is(arrived.length, before);
  await page.context().close();
});
