import type { TestService, TestUser } from "../service.ts";
import { type Answer, allow, authorizeUrl, type Fields, formOf, pkce, read } from "./oauth.ts";
import type { TestBrowser } from "./test-browser.ts";

/** A client that has registered itself. */
export type RegisteredClient = { clientId: string; redirectUri: string };

/** Sends a registration request (RFC 7591 §3.1). */
export function postRegistration(service: TestService, body: unknown, headers: object = {}): Promise<Answer> {
  return read(
    fetch(`${service.url}/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    }),
  );
}

/** Registers a client. Its first redirect URI is the one that it uses. */
export async function register(
  service: TestService,
  metadata: { redirect_uris: string[]; client_name?: string },
): Promise<RegisteredClient> {
  const { status, body, text } = await postRegistration(service, metadata);
  if (status !== 201) throw new Error(`the registration failed: ${text}`);
  return { clientId: String(body.client_id), redirectUri: metadata.redirect_uris[0] as string };
}

/** Sends a token request of a registered client, which is public. */
export function requestTokens(
  service: TestService,
  { clientId }: Pick<RegisteredClient, "clientId">,
  fields: Fields,
): Promise<Answer> {
  const body = formOf({ client_id: clientId, ...fields });
  return read(fetch(`${service.url}/oauth/token`, { method: "POST", body }));
}

/** Runs the code flow of a registered client on the real pages, for MCP by default; returns the token response. */
export async function connectRegistered(
  service: TestService,
  client: RegisteredClient,
  user: TestUser,
  {
    resource = service.urls.mcp,
    scope,
    ...options
  }: { browser?: TestBrowser; organizationId?: string; resource?: string; scope?: string } = {},
): Promise<Answer> {
  const { verifier, challenge } = await pkce();
  const redirect_uri = client.redirectUri;
  const url = authorizeUrl(service, client, {
    redirect_uri,
    resource,
    scope,
    code_challenge: challenge,
  });
  const callback = await allow(service, user, url, options);
  const code = callback.searchParams.get("code");
  if (!code) throw new Error(`no code: ${callback.href}`);
  return requestTokens(service, client, {
    grant_type: "authorization_code",
    code,
    redirect_uri,
    resource,
    code_verifier: verifier,
  });
}
