import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { TestService, TestUser } from "../service.ts";
import { openConsent } from "./oauth.ts";
import { TestBrowser } from "./test-browser.ts";

const REDIRECT_URL = "http://127.0.0.1:6274/oauth/callback";

/** What a host stores between its connections. */
type HostState = {
  client?: StoredOAuthClientInformation | undefined;
  tokens?: StoredOAuthTokens | undefined;
  discovery?: OAuthDiscoveryState;
  verifier?: string;
  /** The URL that the browser returned to. */
  callback?: URL;
};

/** An MCP host that registers itself, on the official SDK. */
export type SelfRegisteringHost = {
  state: HostState;
  /** Connects; the user signs in and allows access if that is needed. The caller closes the client. */
  connect(): Promise<Client>;
};

/** Creates a host whose authorization requests `user` allows on the real pages. */
export function createSelfRegisteringHost(
  service: TestService,
  user: TestUser,
  options: Pick<OAuthClientProvider, "dpop"> = {},
): SelfRegisteringHost {
  const state: HostState = {};
  const authProvider = { ...createAuthProvider(state, service, user), ...options };
  const createTransport = () =>
    new StreamableHTTPClientTransport(new URL(service.urls.mcp), { authProvider });

  async function connectOnce(): Promise<Client> {
    const client = new Client({ name: "MCP host", version: "1" });
    await client.connect(createTransport());
    return client;
  }

  return {
    state,
    async connect() {
      try {
        return await connectOnce();
      } catch (error) {
        if (!(error instanceof UnauthorizedError) || !state.callback) throw error;
        await createTransport().finishAuth(state.callback.searchParams);
        return connectOnce();
      }
    },
  };
}

function createAuthProvider(state: HostState, service: TestService, user: TestUser): OAuthClientProvider {
  const browser = new TestBrowser(service.url);
  const keep =
    <Name extends keyof HostState>(name: Name) =>
    (value: NonNullable<HostState[Name]>) => {
      state[name] = value;
    };
  return {
    redirectUrl: REDIRECT_URL,
    clientMetadata: { client_name: "MCP host", redirect_uris: [REDIRECT_URL] },
    clientInformation: () => state.client,
    saveClientInformation: keep("client"),
    tokens: () => state.tokens,
    saveTokens: keep("tokens"),
    codeVerifier: () => state.verifier as string,
    saveCodeVerifier: keep("verifier"),
    discoveryState: () => state.discovery,
    saveDiscoveryState: keep("discovery"),
    invalidateCredentials(scope) {
      if (scope === "client" || scope === "all") state.client = undefined;
      if (scope === "tokens" || scope === "all") state.tokens = undefined;
    },
    async redirectToAuthorization(url) {
      const consent = await openConsent(browser, user, url.href);
      state.callback = new URL((await browser.press(consent, "Allow")).url);
    },
  };
}
