import test, { type ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { OPERATOR } from "../../resources/events.ts";
import { type CallbackServer, startCallbackServer } from "../harness/callback.ts";
import { openPage, useChromium } from "../harness/chromium.ts";
import { authorizeUrl } from "../harness/oauth.ts";
import { startTestService, type TestOrganization } from "../harness/service.ts";

const service = await startTestService();
const user = await service.createUser([(await service.createOrganization()).id]);
const app = await createApp();
const home = await startCallbackServer();
const elsewhere = home.url.replace("127.0.0.1", "localhost").replace("/callback", "/home");
const direct = await startCallbackServer();
const toOrigin = await startCallbackServer(elsewhere);
const toPort = await startCallbackServer(home.url.replace("/callback", "/home"));
const toScheme = await startCallbackServer("test-app://signed-in");

const inChromium = useChromium();
test.after.always(async () => {
  for (const server of [home, direct, toOrigin, toPort, toScheme]) server.close();
  await service.close();
});

async function createApp(): Promise<TestOrganization> {
  const organization = await service.createOrganization("Acme");
  const uris = ["http://127.0.0.1/callback", "com.example.app:/callback"];
  await service.storage.clients.setRedirectUris(organization.id, uris, OPERATOR);
  return organization;
}

type Journey = { redirectUri: string; end: string; callback?: CallbackServer };

/** The addresses that the callbacks of apps lead to. */
const JOURNEYS: Record<string, Journey> = {
  "a page of the app": { redirectUri: direct.url, end: direct.url, callback: direct },
  "another origin": { redirectUri: toOrigin.url, end: elsewhere, callback: toOrigin },
  "another port": { redirectUri: toPort.url, end: home.url.replace("/callback", "/home"), callback: toPort },
  "a private scheme": { redirectUri: toScheme.url, end: "test-app://signed-in", callback: toScheme },
  "a native app": { redirectUri: "com.example.app:/callback", end: "com.example.app:/callback" },
};

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

async function fillIn(page: Page) {
  await page.getByLabel("Username").fill(user.username);
  await page.getByLabel("Password").fill(user.password);
}

async function signIn(page: Page) {
  await fillIn(page);
  await press(page, "Sign in");
}

/** Resolves to the address under `end` that the browser goes to, whether or not anything answers there. */
async function arrival(page: Page, end: string): Promise<string> {
  const refusal = page.waitForEvent("console", (message) =>
    message.text().includes("Content Security Policy"),
  );
  const request = page.waitForRequest((asked) => asked.isNavigationRequest() && asked.url().startsWith(end));
  const first = await Promise.race([
    request,
    refusal.then((message) => Promise.reject(new Error(message.text()))),
  ]);
  return first.url();
}

type Options = { javaScriptEnabled: boolean; isSignedIn: boolean };

/** Opens an authorization and ends before the form whose redirects are looked at. */
async function open(browser: Browser, url: string, { javaScriptEnabled, isSignedIn }: Options) {
  const opened = await openPage(browser, { javaScriptEnabled });
  const { page } = opened;
  if (isSignedIn) {
    await page.goto(`${service.url}/auth/login`);
    await signIn(page);
    await page.waitForURL("**/dashboard/**");
  }
  await page.goto(url);
  return opened;
}

/** Presses a button, after which the browser follows the redirects to their end. */
async function isAnswered(t: ExecutionContext, page: Page, journey: Journey, button: string, answer: RegExp) {
  const arrived = arrival(page, journey.end);
  await press(page, button);
  const url = await arrived;
  t.regex(journey.callback?.arrived.at(-1) ?? url, answer);
  if (url.startsWith("http")) await page.getByText("Back in the app").waitFor();
}

const WAYS = [true, false].flatMap((isSignedIn) =>
  [true, false].map((javaScriptEnabled) => ({
    isSignedIn,
    javaScriptEnabled,
    way: `${isSignedIn ? "signed in before" : "signing in on the way"}, ${javaScriptEnabled ? "with" : "without"} JavaScript`,
  })),
);

for (const [where, journey] of Object.entries(JOURNEYS)) {
  for (const { way, ...options } of WAYS) {
    inChromium(`after consent the browser follows the redirects to ${where}: ${way}`, async (t, browser) => {
      const url = authorizeUrl(service, app, { redirect_uri: journey.redirectUri });
      const { page, complaints } = await open(browser, url, options);
      if (!options.isSignedIn) await signIn(page);
      await isAnswered(t, page, journey, "Allow", /[?&]code=/);
      t.deepEqual(complaints, []);
      await page.context().close();
    });
  }

  inChromium(`after a refusal the browser follows the redirects to ${where}`, async (t, browser) => {
    const url = authorizeUrl(service, app, { redirect_uri: journey.redirectUri });
    const { page, complaints } = await open(browser, url, { isSignedIn: false, javaScriptEnabled: true });
    await signIn(page);
    await isAnswered(t, page, journey, "Cancel", /[?&]error=access_denied/);
    t.deepEqual(complaints, []);
    await page.context().close();
  });

  inChromium(
    `after an error at the sign-in the browser follows the redirects to ${where}`,
    async (t, browser) => {
      const suspended = await createApp();
      const url = authorizeUrl(service, suspended, { redirect_uri: journey.redirectUri });
      const { page, complaints } = await open(browser, url, { isSignedIn: false, javaScriptEnabled: true });
      await service.storage.organizations.setPlan(suspended.id, "free", OPERATOR);
      await fillIn(page);
      await isAnswered(t, page, journey, "Sign in", /[?&]error=unauthorized_client/);
      t.deepEqual(complaints, []);
      await page.context().close();
    },
  );
}
