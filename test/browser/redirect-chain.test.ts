import type { ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { useChromium } from "../harness/browser/chromium.ts";
import { fill, press, signIn } from "../harness/browser/page-actions.ts";
import { openSignedIn } from "../harness/browser/readable.ts";
import { type CallbackServer, startCallbackServer } from "../harness/callback.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";

const service = await startTestService();
const URIS = ["http://127.0.0.1/callback", "com.example.app:/callback"];
const { app, user } = await createApp(service, URIS);
const home = await startCallbackServer();
const otherOrigin = home.url.replace("127.0.0.1", "localhost").replace("/callback", "/home");
const direct = await startCallbackServer();
const toOrigin = await startCallbackServer(otherOrigin);
const toPort = await startCallbackServer(home.url.replace("/callback", "/home"));
const SCHEME_URI = "com.example.test://signed-in";
const toScheme = await startCallbackServer(SCHEME_URI);

const inChromium = useChromium();

type Destination = { redirectUri: string; end: string; callback?: CallbackServer };

/** Where the callbacks of apps redirect. */
const DESTINATIONS: Record<string, Destination> = {
  "a page of the app": { redirectUri: direct.url, end: direct.url, callback: direct },
  "another origin": { redirectUri: toOrigin.url, end: otherOrigin, callback: toOrigin },
  "another port": { redirectUri: toPort.url, end: home.url.replace("/callback", "/home"), callback: toPort },
  "a private-use scheme": { redirectUri: toScheme.url, end: SCHEME_URI, callback: toScheme },
  "a native app": { redirectUri: "com.example.app:/callback", end: "com.example.app:/callback" },
};

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

/** Opens an authorization, and presses the last button. */
async function follow(
  t: ExecutionContext,
  browser: Browser,
  { redirectUri, end, callback }: Destination,
  { answer = "Allow", isSignedIn = false, javaScriptEnabled = true },
) {
  const known = isSignedIn ? user : undefined;
  const { page, complaints } = await openSignedIn(browser, service.url, known, { javaScriptEnabled });
  const client = answer === "Sign in" ? (await createApp(service, URIS)).app : app;
  await page.goto(authorizeUrl(service, client, { redirect_uri: redirectUri }));
  if (answer === "Sign in") {
    await service.storage.organizations.setPlan(client.id, "free", OPERATOR);
    await fill(page, { username: user.username, password: user.password });
  } else if (!isSignedIn) await signIn(page, user);
  const arrived = navigationTo(page, end);
  await press(page, answer);
  const url = await arrived;
  t.regex(callback?.arrived.at(-1) ?? url, ANSWERS[answer] as RegExp);
  if (url.startsWith("http")) await page.getByText("Back in the app").waitFor();
  t.deepEqual(complaints, []);
}

const ANSWERS: Record<string, RegExp> = {
  Allow: /[?&]code=/,
  Cancel: /[?&]error=access_denied/,
  "Sign in": /[?&]error=unauthorized_client/,
};

for (const [where, destination] of Object.entries(DESTINATIONS))
  for (const answer of Object.keys(ANSWERS))
    inChromium(`after “${answer}” the browser follows the redirects to ${where}`, (t, browser) =>
      follow(t, browser, destination, { answer }),
    );

// Sessions and scripts don't depend on the destination.
for (const [isSignedIn, javaScriptEnabled] of [
  [true, true],
  [true, false],
  [false, false],
] as const)
  inChromium(
    `after consent the browser follows the redirects ${isSignedIn ? "with" : "without"} a session, ${javaScriptEnabled ? "with" : "without"} JavaScript`,
    (t, browser) =>
      follow(t, browser, DESTINATIONS["a page of the app"] as Destination, { isSignedIn, javaScriptEnabled }),
  );
