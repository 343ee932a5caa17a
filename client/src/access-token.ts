import { LinkgateError } from "./errors.ts";
import { fetchWithRetries, unlessAborted } from "./retries.ts";

type GetToken = () => string | Promise<string>;
/** `scope` is separated by spaces; the default is every scope that the client can have. */
type OAuthClient = { clientId: string; scope?: string };

/** How to get access tokens. A client secret belongs on servers only. */
export type Credentials =
  | (OAuthClient & { clientSecret: string })
  /** Returns a token of the platform: a new one for each call, because the server accepts each once. */
  | (OAuthClient & { workloadToken: GetToken })
  /** A function is called for each request, and again after a token was rejected. */
  | { accessToken: string | GetToken };

type Connection = { baseUrl: string; maxRetries: number; fetch: (request: Request) => Promise<Response> };

// A token is renewed after this share of its lifetime, so it doesn't expire on the way.
const USED_SHARE = 0.9;

/** Returns functions that get a token, and another one than a token that was rejected, or the same if there is no other. */
export function createTokenSource(credentials: Credentials, connection: Connection) {
  let current: { token: string; renewAt: number } | undefined;
  let pending: Promise<string> | undefined;

  async function renew(): Promise<string> {
    const { access_token, expires_in } = await requestToken(credentials, connection);
    current = { token: access_token, renewAt: Date.now() + expires_in * 1000 * USED_SHARE };
    return access_token;
  }

  async function get(signal: AbortSignal): Promise<string> {
    if ("accessToken" in credentials) {
      const { accessToken } = credentials;
      return typeof accessToken === "function" ? accessToken() : accessToken;
    }
    if (current && Date.now() < current.renewAt) return current.token;
    // Without the signal, because other calls wait for the same token.
    pending ??= renew().finally(() => (pending = undefined));
    return unlessAborted(pending, signal);
  }

  function replace(rejected: string, signal: AbortSignal): Promise<string> {
    if (current?.token === rejected) current = undefined;
    return get(signal);
  }
  return { get, replace };
}

type Token = { access_token: string; expires_in: number };

async function requestToken(
  credentials: Credentials,
  { baseUrl, maxRetries, fetch }: Connection,
): Promise<Token> {
  const response = await fetchWithRetries(undefined, maxRetries, async () => {
    const body = new URLSearchParams(await parametersOf(credentials));
    return fetch(new Request(`${baseUrl}/oauth/token`, { method: "POST", body }));
  });
  const body = await response.json().catch(() => undefined);
  if (!response.ok) throw new LinkgateError(response, body);
  return body;
}

async function parametersOf(credentials: Credentials): Promise<Record<string, string>> {
  if ("accessToken" in credentials) return {};
  const { clientId, scope } = credentials;
  const common = { client_id: clientId, ...(scope !== undefined && { scope }) };
  if ("clientSecret" in credentials)
    return { ...common, grant_type: "client_credentials", client_secret: credentials.clientSecret };
  // RFC 7523 §2.1
  const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
  return { ...common, grant_type, assertion: await credentials.workloadToken() };
}
