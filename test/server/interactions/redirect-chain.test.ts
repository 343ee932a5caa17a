import test, { type ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { OPERATOR } from "../../../resources/events/types.ts";
import { openPage, useChromium } from "../../harness/browser/chromium.ts";
import { type CallbackServer, startCallbackServer } from "../../harness/callback.ts";
import { authorizeUrl } from "../../harness/clients/oauth.ts";
import { startTestService, type TestOrganization } from "../../harness/service.ts";

export const stage = "browser";

const service = await startTestService();
const user = await service.createUser([(await service.createOrganization()).id]);
const app = await createApp();
const home = await startCallbackServer();
const otherOrigin = home.url.replace("127.0.0.1", "localhost").replace("/callback", "/home");
const direct = await startCallbackServer();
const toOrigin = await startCallbackServer(otherOrigin);
const toPort = await startCallbackServer(home.url.replace("/callback", "/home"));
const toScheme = await startCallbackServer("com.example.test://signed-in");

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

type Destination = { redirectUri: string; end: string; callback?: CallbackServer };

/** Where the callbacks of apps redirect. */
const DESTINATIONS: Record<string, Destination> = {
  "a page of the app": { redirectUri: direct.url, end: direct.url, callback: direct },
  "another origin": { redirectUri: toOrigin.url, end: otherOrigin, callback: toOrigin },
  "another port": { redirectUri: toPort.url, end: home.url.replace("/callback", "/home"), callback: toPort },
  "a private-use scheme": {
    redirectUri: toScheme.url,
    end: "com.example.test://signed-in",
    callback: toScheme,
  },
  "a native app": { redirectUri: "com.example.app:/callback", end: "com.example.app:/callback" },
};

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

async function fillInCredentials(page: Page) {
  await page.getByLabel("Username").fill(user.username);
  await page.getByLabel("Password").fill(user.password);
}

async function signIn(page: Page) {
  await fillInCredentials(page);
  await press(page, "Sign in");
}

/** Resolves to the URL under `end` that the browser navigates to, even if it can't be loaded. */
async function navigationTo(page: Page, end: string): Promise<string> {
  const violation = page.waitForEvent("console", (message) =>
    message.text().includes("Content Security Policy"),
  );
  const request = page.waitForRequest((sent) => sent.isNavigationRequest() && sent.url().startsWith(end));
  const first = await Promise.race([
    request,
    violation.then((message) => Promise.reject(new Error(message.text()))),
  ]);
  return first.url();
}

type Options = { javaScriptEnabled: boolean; isSignedIn: boolean };

/** Opens an authorization, up to the first form. */
async function openAuthorization(browser: Browser, url: string, { javaScriptEnabled, isSignedIn }: Options) {
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

/** Presses a button and asserts that the browser follows the redirects to their end. */
async function assertArrives(
  t: ExecutionContext,
  page: Page,
  destination: Destination,
  button: string,
  parameter: RegExp,
) {
  const arrived = navigationTo(page, destination.end);
  await press(page, button);
  const url = await arrived;
  t.regex(destination.callback?.arrived.at(-1) ?? url, parameter);
  if (url.startsWith("http")) await page.getByText("Back in the app").waitFor();
}

const VARIANTS = [true, false].flatMap((isSignedIn) =>
  [true, false].map((javaScriptEnabled) => ({
    isSignedIn,
    javaScriptEnabled,
    variant: `${isSignedIn ? "with a session" : "without a session"}, ${javaScriptEnabled ? "with" : "without"} JavaScript`,
  })),
);

for (const [where, destination] of Object.entries(DESTINATIONS)) {
  for (const { variant, ...options } of VARIANTS) {
    inChromium(
      `after consent the browser follows the redirects to ${where}: ${variant}`,
      async (t, browser) => {
        const url = authorizeUrl(service, app, { redirect_uri: destination.redirectUri });
        const { page, complaints } = await openAuthorization(browser, url, options);
        if (!options.isSignedIn) await signIn(page);
        await assertArrives(t, page, destination, "Allow", /[?&]code=/);
        t.deepEqual(complaints, []);
        await page.context().close();
      },
    );
  }

  inChromium(`after a cancellation the browser follows the redirects to ${where}`, async (t, browser) => {
    const url = authorizeUrl(service, app, { redirect_uri: destination.redirectUri });
    const { page, complaints } = await openAuthorization(browser, url, {
      isSignedIn: false,
      javaScriptEnabled: true,
    });
    await signIn(page);
    await assertArrives(t, page, destination, "Cancel", /[?&]error=access_denied/);
    t.deepEqual(complaints, []);
    await page.context().close();
  });

  inChromium(
    `after an error on signing in the browser follows the redirects to ${where}`,
    async (t, browser) => {
      const suspended = await createApp();
      const url = authorizeUrl(service, suspended, { redirect_uri: destination.redirectUri });
      const { page, complaints } = await openAuthorization(browser, url, {
        isSignedIn: false,
        javaScriptEnabled: true,
      });
      await service.storage.organizations.setPlan(suspended.id, "free", OPERATOR);
      await fillInCredentials(page);
      await assertArrives(t, page, destination, "Sign in", /[?&]error=unauthorized_client/);
      t.deepEqual(complaints, []);
      await page.context().close();
    },
  );
}
