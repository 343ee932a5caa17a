import { createPrivateKey, type JsonWebKey } from "node:crypto";
import type { ExecutionContext } from "ava";
import { OAuth2Server } from "oauth2-mock-server";
import { type Page, TestBrowser } from "../clients/test-browser.ts";
import { cookieOf, isSignedIn } from "../clients/visits.ts";
import { closeAfterTests } from "../closing.ts";
import { startTestService, type TestService } from "../service.ts";

export type Token = { header: Record<string, unknown>; payload: Record<string, unknown> };
/** The claims of an ID token about the user, or a change that makes it invalid. */
export type Change = (token: Token) => unknown;

export type MockProvider = Awaited<ReturnType<typeof startMockProvider>>;

export function providerSettings(issuer: string): Record<string, string> {
  return {
    IDP_ISSUER: issuer,
    IDP_CLIENT_ID: "linkgate-at-idp",
    IDP_CLIENT_SECRET: "a secret of the identity provider",
    IDP_NAME: "Example ID",
  };
}

export async function startMockProvider(port = 0) {
  const server = new OAuth2Server();
  await server.issuer.keys.generate("RS256");
  await server.start(port, "localhost");
  const { service } = server;
  const issuer = server.issuer.url as string;
  const [privateKey] = server.issuer.keys.toJSON(true);
  const [publicKey] = server.issuer.keys.toJSON();

  /** Follows an authorization request; resolves to the callback URL that the provider redirects to. */
  async function answer({ url }: { url: string }): Promise<string> {
    const response = await fetch(url, { redirect: "manual" });
    return response.headers.get("location") as string;
  }

  return {
    service,
    issuer,
    answer,
    privateKey: createPrivateKey({ key: privateKey as JsonWebKey, format: "jwk" }),
    publicKey: publicKey as JsonWebKey,
    tamper(change: (body: Record<string, unknown>) => unknown) {
      service.once("beforeResponse", ({ body }) => void change(body as Record<string, unknown>));
    },
    /** Changes the next ID token. The access token that is issued with it has no audience. */
    say(change: Change) {
      const onToken = (token: Token) => {
        if (token.payload.aud === undefined) return;
        service.off("beforeTokenSigning", onToken);
        change(token);
      };
      service.on("beforeTokenSigning", onToken);
    },
    stop: closeAfterTests(() => server.stop()),
  };
}

/** Signs in with SSO: from the sign-in page to the provider and back. */
export async function signInExternally(
  service: Pick<TestService, "url">,
  provider: Pick<MockProvider, "answer">,
  browser: TestBrowser,
  query = "",
): Promise<Page> {
  const away = await browser.open(`${service.url}/auth/sso${query}`);
  return browser.open(await provider.answer(away));
}

export async function signInWith(
  service: Pick<TestService, "url">,
  provider: MockProvider,
  claims: object,
  { browser = new TestBrowser(service.url), query = "" } = {},
) {
  provider.say(({ payload }) => Object.assign(payload, claims));
  return { browser, page: await signInExternally(service, provider, browser, query) };
}

/** Asserts that the page after a sign-in is an error with no way on, and that no user is signed in. */
export async function isSignInRefused(
  t: ExecutionContext,
  service: Pick<TestService, "url">,
  browser: TestBrowser,
  page: Page,
) {
  t.is(page.status, 400, page.text);
  t.is(page.headers.get("location"), null);
  t.true(page.headers.get("content-type")?.includes("text/html"));
  t.is(await cookieOf(service, browser, "session"), undefined);
  t.false(await isSignedIn(service, browser));
}

export async function startWithProvider(settings: Record<string, string> = {}) {
  const provider = await startMockProvider();
  const service = await startTestService({ ...providerSettings(provider.issuer), ...settings });
  return { provider, service };
}
