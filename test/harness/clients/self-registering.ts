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
import { openConsent } from "./authorization.ts";
import { TestBrowser } from "./test-browser.ts";

const REDIRECT_URL = "http://127.0.0.1:6274/oauth/callback";

type HostState = {
  client?: StoredOAuthClientInformation | undefined;
  tokens?: StoredOAuthTokens | undefined;
  discovery?: OAuthDiscoveryState;
  verifier?: string;
  callback?: URL;
};

/**
 * Creates an MCP host that registers itself, on the official SDK. `user` allows its authorization requests on the real
 * pages.
 */
export function createSelfRegisteringHost(
  service: TestService,
  user: TestUser,
  options: Pick<OAuthClientProvider, "dpop"> = {},
) {
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
    /** Connects; the user signs in and allows access if that is needed. The caller closes the client. */
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
  const keep = (changes: HostState) => void Object.assign(state, changes);
  return {
    redirectUrl: REDIRECT_URL,
    clientMetadata: { client_name: "MCP host", redirect_uris: [REDIRECT_URL] },
    clientInformation: () => state.client,
    saveClientInformation: (client) => keep({ client }),
    tokens: () => state.tokens,
    saveTokens: (tokens) => keep({ tokens }),
    codeVerifier: () => state.verifier as string,
    saveCodeVerifier: (verifier) => keep({ verifier }),
    discoveryState: () => state.discovery,
    saveDiscoveryState: (discovery) => keep({ discovery }),
    invalidateCredentials(scope) {
      if (scope === "client" || scope === "all") keep({ client: undefined });
      if (scope === "tokens" || scope === "all") keep({ tokens: undefined });
    },
    async redirectToAuthorization(url) {
      const consent = await openConsent(browser, user, url.href);
      keep({ callback: new URL((await browser.press(consent, "Allow")).url) });
    },
  };
}
