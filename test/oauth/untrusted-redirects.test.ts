import test, { type ExecutionContext } from "ava";
import { openConsent } from "../harness/clients/authorization.ts";
import type { Fields } from "../harness/clients/authorization-request.ts";
import { authorizeUrl, createApp, REDIRECT_URI } from "../harness/clients/authorization-request.ts";
import { register } from "../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../harness/clients/test-browser.ts";
import { startPublisher } from "../harness/publisher.ts";
import { startTestService } from "../harness/service.ts";

const publisher = await startPublisher(["app.evil.example"]);
const service = await startTestService(
  { ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" },
  publisher.connections,
);
const { app, user } = await createApp(service);
const signedIn = new TestBrowser(service.url);
await openConsent(signedIn, user, authorizeUrl(service, app));

const EVIL_REDIRECT = "https://app.evil.example/callback";

let count = 0;
/** Publishes a metadata document at a new URL, which is the client id. A test that does is serial: a fetch has 3 s. */
function publish(): string {
  const client_id = `https://app.evil.example/${++count}`;
  publisher.publish(client_id, { body: { client_id, redirect_uris: [EVIL_REDIRECT] } });
  return client_id;
}

const INVALID: [what: string, changes: Fields, error: string][] = [
  ["no response_type", { response_type: undefined }, "invalid_request"],
  ["an unknown scope", { scope: "unknown" }, "invalid_scope"],
  ["an unknown resource", { resource: "https://other.example/" }, "invalid_target"],
  ["no PKCE", { code_challenge: undefined, code_challenge_method: undefined }, "invalid_request"],
  ["a repeated parameter", { scope: ["links:read", "links:read"] }, "invalid_request"],
];

async function openAndSignIn(t: ExecutionContext, url: string): Promise<URL> {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(url);
  t.is(new URL(page.url).pathname, "/auth/login");
  return new URL((await browser.signIn(page, user)).url);
}

function isErrorResponse(t: ExecutionContext, url: URL, error: string): void {
  t.is(url.origin + url.pathname, REDIRECT_URI);
  t.is(url.searchParams.get("error"), error);
  t.is(url.searchParams.get("state"), "a & b");
  t.is(url.searchParams.get("iss"), service.url);
}

function isErrorPage(t: ExecutionContext, page: Page, url: string): void {
  t.is(page.url, url, "no redirect");
  t.is(page.status, 400);
}

const linkOn = ({ html }: Page) => html.querySelector('main a:not([href="/"])')?.attributes.href;

for (const [what, changes, error] of INVALID) {
  test(`an invalid request with ${what} asks for a sign-in, then redirects with the error`, async (t) => {
    const url = authorizeUrl(service, app, { ...changes, state: "a & b" });
    isErrorResponse(t, await openAndSignIn(t, url), error);
    isErrorResponse(t, new URL((await signedIn.open(url)).url), error);
  });

  test.serial(`before a redirect to an app with a document and ${what}, the user signs in`, async (t) => {
    const url = authorizeUrl(service, { clientId: publish() }, { redirect_uri: EVIL_REDIRECT, ...changes });
    const { origin, searchParams } = await openAndSignIn(t, url);
    t.is(origin, "https://app.evil.example");
    t.is(searchParams.get("error"), error);
    t.is(new URL((await signedIn.open(url)).url).origin, "https://app.evil.example");
  });

  test.serial(`no app with a metadata document is redirected to another website by ${what}`, async (t) => {
    const redirect_uri = "https://unknown.example/callback";
    const missing = "https://app.evil.example/missing";
    for (const clientId of [publish(), missing, "https://chatgpt.com/oauth/client.json"])
      for (const browser of [new TestBrowser(service.url), signedIn]) {
        const url = authorizeUrl(service, { clientId }, { redirect_uri, ...changes });
        const page = await browser.open(url);
        t.is(page.url, url, "no redirect");
        t.true(page.status >= 400 && page.status < 500);
        t.is(linkOn(page), undefined);
      }
  });
}

test("an invalid request with prompt=none gets a page without a sign-in", async (t) => {
  const url = authorizeUrl(service, app, { prompt: "none", scope: "unknown", state: "a & b" });
  const page = await new TestBrowser(service.url).open(url);
  isErrorPage(t, page, url);
  t.regex(page.text, /app\.example\.com/);
  isErrorResponse(t, new URL(linkOn(page) ?? ""), "invalid_scope");
  isErrorResponse(t, new URL((await signedIn.open(url)).url), "invalid_scope");
});

test("silent authentication by an organization's client always redirects", async (t) => {
  const url = authorizeUrl(service, app, { prompt: "none", state: "a & b" });
  const stranger = new TestBrowser(service.url);
  isErrorResponse(t, new URL((await stranger.open(url)).url), "login_required");
  isErrorResponse(t, new URL((await signedIn.open(url)).url), "consent_required");
});

test.serial("prompt=none of an app that identified itself redirects only after a sign-in", async (t) => {
  const { clientId: registered } = await register(service, { redirect_uris: [EVIL_REDIRECT] });
  for (const clientId of [publish(), registered]) {
    const url = authorizeUrl(service, { clientId }, { redirect_uri: EVIL_REDIRECT, prompt: "none" });
    const page = await new TestBrowser(service.url).open(url);
    isErrorPage(t, page, url);
    const continued = new URL(linkOn(page) ?? "");
    t.is(continued.origin, "https://app.evil.example");
    t.is(continued.searchParams.get("error"), "login_required");
  }
});

test("an invalid request redirects to a user's own computer without a sign-in", async (t) => {
  const loopback = "http://127.0.0.1:8080/callback";
  const { app: local } = await createApp(service, [loopback]);
  const url = authorizeUrl(service, local, { redirect_uri: loopback, scope: "unknown" });
  const page = await new TestBrowser(service.url).open(url);
  t.is(new URL(page.url).searchParams.get("error"), "invalid_scope");
});

test("an app that registered itself isn't redirected to even if the user is signed in", async (t) => {
  for (const redirect_uri of ["https://evil.example/callback", "com.evil.example:/callback"]) {
    const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
    for (const changes of [{ scope: "unknown" }, { prompt: "none" }]) {
      const page = await signedIn.open(authorizeUrl(service, { clientId }, { redirect_uri, ...changes }));
      t.is(page.status, 400);
      t.regex(page.html.querySelector("main a")?.text ?? "", /evil\.example/);
    }
  }
});

test("an app that registered itself with a known website is redirected to without a sign-in", async (t) => {
  const redirect_uri = "https://vscode.dev/redirect";
  const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, { clientId }, { redirect_uri, scope: "unknown" }));
  t.true(page.url.startsWith(`${redirect_uri}?error=invalid_scope&`), page.url);
});
