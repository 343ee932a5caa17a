import test from "ava";
import * as oidc from "openid-client";
import type { Page } from "playwright-core";
import { OPERATOR } from "../../resources/events.ts";
import { startCallbackServer } from "../harness/callback.ts";
import { openPage, tabTo, useChromium } from "../harness/chromium.ts";
import { discover } from "../harness/flow.ts";
import { bearer, startTestService, type TestUser } from "../harness/service.ts";

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
  "with the keyboard alone, a person signs in, allows the access, and the app gets tokens",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser);
    const { config, url, checks } = await startFlow();
    await page.goto(url);
    t.is(await page.title(), "Sign in · linkgate");
    t.is(await page.locator(":focus").getAttribute("id"), "username", "the first field has the focus");

    await signIn(page, { ...ada, password: "not the password" });
    await page.waitForSelector("[role=alert]");
    t.is(await page.textContent("[role=alert]"), "The username or the password is wrong.");
    t.is(await page.inputValue("#username"), ada.username);
    t.is(await page.inputValue("#password"), "");
    t.is(await page.locator(":focus").getAttribute("id"), "password", "the name is there already");

    await page.keyboard.type(ada.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=Allow access?");
    t.regex((await page.textContent("main")) ?? "", /An app of Acme & Søns would like to act for you/);
    await tabTo(page, "First");
    await page.keyboard.press("ArrowDown");
    await press(page, "Allow");
    await page.waitForSelector("text=Back in the app");
    t.true(page.url().startsWith(CALLBACK));

    const tokens = await oidc.authorizationCodeGrant(config, new URL(page.url()), checks);
    t.is(tokens.claims()?.sub, ada.id);
    const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(tokens.access_token) });
    t.is(((await answer.json()) as { id: string }).id, second.id, "the organization that was chosen");
    t.deepEqual(complaints, []);
    await page.context().close();
  },
);

inChromium("Cancel sends the person back to the app without a code", async (t, browser) => {
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

inChromium(
  "prompt=login lets another person sign in; who was signed in before is signed out",
  async (t, browser) => {
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
    t.true((await page.textContent("main"))?.includes(grace.username), "and stays signed in");
    t.deepEqual(complaints, []);
    await page.context().close();
  },
);

inChromium("without JavaScript every step works as well", async (t, browser) => {
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

inChromium("sec 21: a page of another origin cannot put ours into a frame", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const { url } = await startFlow();
  await page.goto(CALLBACK.replace("/callback", "/frame"));
  const refused = page.waitForEvent("console");
  await page.setContent(`<iframe src="${url.replaceAll("&", "&amp;")}"></iframe>`);
  await refused;
  t.true(page.frames().every((frame) => !frame.url().startsWith(service.url)));
  t.true(
    complaints.some((complaint) => /frame/i.test(complaint)),
    complaints.join("\n"),
  );
  await page.context().close();
});

inChromium("nothing leads back into a sign-in that is over", async (t, browser) => {
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
  t.is(await page.textContent("h1"), "This page is over");
  t.is(arrived.length, before);
  await page.context().close();
});
