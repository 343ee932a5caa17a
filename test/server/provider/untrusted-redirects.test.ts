import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import { authorizeUrl, createApp, type Fields, openConsent } from "../../harness/clients/oauth.ts";
import { register } from "../../harness/clients/registration.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { startTestService } from "../../harness/service.ts";

const publisher = await startPublisher(["app.evil.example"]);
const service = await startTestService(
  { ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" },
  publisher.connections,
);
const { app, user } = await createApp(service);
const signedIn = new TestBrowser(service.url);
await openConsent(signedIn, user, authorizeUrl(service, app));
test.after.always(async () => {
  publisher.close();
  await service.close();
});

const INVALID: [what: string, changes: Fields, error: string][] = [
  ["no response_type", { response_type: undefined }, "invalid_request"],
  ["an unknown scope", { scope: "unknown" }, "invalid_scope"],
  ["an unknown resource", { resource: "https://other.example/" }, "invalid_target"],
  ["no PKCE", { code_challenge: undefined, code_challenge_method: undefined }, "invalid_request"],
  ["a repeated parameter", { scope: ["links:read", "links:read"] }, "invalid_request"],
];

/** Opens a URL without a session, then signs in. */
async function openAndSignIn(t: ExecutionContext, url: string): Promise<URL> {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(url);
  t.is(new URL(page.url).pathname, "/auth/login");
  return new URL((await browser.signIn(page, user)).url);
}

for (const [what, changes, error] of INVALID) {
  test(`an invalid request with ${what} asks for a sign-in, then redirects with the error`, async (t) => {
    const url = authorizeUrl(service, app, { ...changes, state: "a & b" });
    const redirects = [await openAndSignIn(t, url), new URL((await signedIn.open(url)).url)];
    for (const { origin, pathname, searchParams } of redirects) {
      t.is(origin + pathname, REDIRECT_URI);
      t.is(searchParams.get("error"), error);
      t.is(searchParams.get("state"), "a & b");
      t.is(searchParams.get("iss"), service.url);
    }
  });
}

test("an invalid request with prompt=none gets a page without a sign-in", async (t) => {
  const url = authorizeUrl(service, app, { prompt: "none", scope: "unknown", state: "a & b" });
  const page = await new TestBrowser(service.url).open(url);
  t.is(page.status, 400);
  t.is(page.url, url, "no redirect");
  t.is(page.headers.get("location"), null);
  t.regex(page.text, /app\.example\.com/);
  const continued = new URL(page.html.querySelector("main a")?.attributes.href ?? "");
  const redirected = new URL((await signedIn.open(url)).url);
  for (const { origin, pathname, searchParams } of [continued, redirected]) {
    t.is(origin + pathname, REDIRECT_URI);
    t.is(searchParams.get("error"), "invalid_scope");
    t.is(searchParams.get("state"), "a & b");
    t.is(searchParams.get("iss"), service.url);
  }
});

test("silent authentication by an organization's client always redirects", async (t) => {
  const url = authorizeUrl(service, app, { prompt: "none" });
  for (const [browser, error] of [
    [new TestBrowser(service.url), "login_required"],
    [signedIn, "consent_required"],
  ] as const) {
    const { origin, pathname, searchParams } = new URL((await browser.open(url)).url);
    t.is(origin + pathname, REDIRECT_URI);
    t.is(searchParams.get("error"), error);
  }
});

test("silent authentication by an app that identified itself doesn't redirect without a sign-in", async (t) => {
  const redirect_uri = "https://app.evil.example/callback";
  const document = "https://app.evil.example/silent";
  publisher.publish(document, { body: { client_id: document, redirect_uris: [redirect_uri] } });
  const { clientId: registered } = await register(service, { redirect_uris: [redirect_uri] });
  for (const clientId of [document, registered]) {
    const url = authorizeUrl(service, { clientId }, { redirect_uri, prompt: "none" });
    const page = await new TestBrowser(service.url).open(url);
    t.is(page.status, 400);
    t.is(page.url, url, "no redirect");
    const continued = new URL(page.html.querySelector("main a")?.attributes.href ?? "");
    t.is(continued.origin, "https://app.evil.example");
    t.is(continued.searchParams.get("error"), "login_required");
  }
});

test("an invalid request redirects to a user's own computer without a sign-in", async (t) => {
  const loopback = "http://127.0.0.1:8080/callback";
  const local = await service.createOrganization();
  await service.storage.clients.setRedirectUris(local.id, [loopback], OPERATOR);
  const url = authorizeUrl(service, local, { redirect_uri: loopback, scope: "unknown" });
  t.is(
    new URL((await new TestBrowser(service.url).open(url)).url).searchParams.get("error"),
    "invalid_scope",
  );
});

test("an app that registered itself isn't redirected to even if the user is signed in", async (t) => {
  const redirect_uri = "https://evil.example/callback";
  const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
  for (const changes of [{ scope: "unknown" }, { prompt: "none" }]) {
    const page = await signedIn.open(authorizeUrl(service, { clientId }, { redirect_uri, ...changes }));
    t.is(page.status, 400);
    t.regex(page.html.querySelector("main a")?.text ?? "", /evil\.example/);
  }
});

for (const [what, changes, error] of INVALID) {
  test(`a sign-in comes before the redirect to an app with a metadata document and ${what}`, async (t) => {
    const redirect_uri = "https://app.evil.example/callback";
    const clientId = `https://app.evil.example/${encodeURIComponent(what)}`;
    const document = { client_id: clientId, client_name: "App", redirect_uris: [redirect_uri] };
    publisher.publish(clientId, { body: document });
    const url = authorizeUrl(service, { clientId }, { redirect_uri, ...changes });
    const { origin, searchParams } = await openAndSignIn(t, url);
    t.is(origin, "https://app.evil.example");
    t.is(searchParams.get("error"), error);
    t.is(new URL((await signedIn.open(url)).url).origin, "https://app.evil.example");
  });

  test(`no app with a metadata document is redirected to another website by ${what}`, async (t) => {
    const clientId = "https://app.evil.example/known";
    const document = { client_id: clientId, redirect_uris: ["https://app.evil.example/callback"] };
    publisher.publish(clientId, { body: document });
    const clients = [clientId, "https://app.evil.example/missing", "https://chatgpt.com/oauth/client.json"];
    for (const id of clients) {
      for (const browser of [new TestBrowser(service.url), signedIn]) {
        const redirect_uri = "https://unknown.example/callback";
        const url = authorizeUrl(service, { clientId: id }, { redirect_uri, ...changes });
        const page = await browser.open(url);
        t.is(page.url, url, "no redirect");
        t.true(page.status >= 400 && page.status < 500);
        t.is(page.html.querySelector('main a:not([href="/"])'), null);
      }
    }
  });
}

test("the page links to no redirect URI that isn't registered", async (t) => {
  const changes = { redirect_uri: "https://evil.example/", scope: "unknown" };
  const page = await new TestBrowser(service.url).open(authorizeUrl(service, app, changes));
  t.is(page.status, 400);
  t.is(page.html.querySelector('main a:not([href="/"])'), null);
});
