import { createPrivateKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { OAuth2Server } from "oauth2-mock-server";
import type { Page, TestBrowser } from "../clients/test-browser.ts";
import { startTestService, type TestService } from "../service.ts";

/** The header and payload of a token before it is signed. */
export type Token = { header: Record<string, unknown>; payload: Record<string, unknown> };
/** The claims of an ID token about the user, or a change that makes it invalid. */
export type Change = (token: Token) => unknown;

/** An identity provider, with the ways in which an attacker in between could change its responses. */
export type TestProvider = {
  issuer: string;
  /** Follows an authorization request; resolves to the callback URL that the provider redirects to. */
  answer(page: Page): Promise<string>;
  /** Changes the next response of the token endpoint. */
  tamper(change: (body: Record<string, unknown>) => unknown): void;
  /** The key that signs tokens. */
  privateKey: KeyObject;
  publicKey: JsonWebKey;
  stop(): Promise<void>;
};

/** Returns the settings of a service that uses this identity provider. */
export function providerSettings(issuer: string): Record<string, string> {
  return {
    IDP_ISSUER: issuer,
    IDP_CLIENT_ID: "linkgate-at-idp",
    IDP_CLIENT_SECRET: "a secret of the identity provider",
    IDP_NAME: "Example ID",
  };
}

/** Starts an identity provider. The caller stops it. */
export async function startMockProvider(port = 0) {
  const server = new OAuth2Server();
  await server.issuer.keys.generate("RS256");
  await server.start(port, "localhost");
  const { service } = server;
  const issuer = server.issuer.url as string;
  const [privateKey] = server.issuer.keys.toJSON(true);
  const [publicKey] = server.issuer.keys.toJSON();

  async function answer(page: Page): Promise<string> {
    const response = await fetch(page.url, { redirect: "manual" });
    return response.headers.get("location") as string;
  }

  return {
    server,
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
    stop: () => server.stop(),
  };
}

/** Signs in with SSO: from the sign-in page to the provider and back. */
export async function signInExternally(
  service: Pick<TestService, "url">,
  provider: Pick<TestProvider, "answer">,
  browser: TestBrowser,
  query = "",
): Promise<Page> {
  const away = await browser.open(`${service.url}/auth/sso${query}`);
  return browser.open(await provider.answer(away));
}

/** Starts a service and its identity provider. */
export async function startWithProvider(settings: Record<string, string> = {}) {
  const provider = await startMockProvider();
  const service = await startTestService({ ...providerSettings(provider.issuer), ...settings });
  return {
    provider,
    service,
    async close() {
      await service.close();
      await provider.stop();
    },
  };
}
