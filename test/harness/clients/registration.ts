import { postForm, type TestService, type TestUser } from "../service.ts";
import { type Answer, type Choice, codeFor, type Fields, formOf, read, redemptionOf } from "./oauth.ts";

export type RegisteredClient = { clientId: string; redirectUri: string };

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
  return read(postForm(`${service.url}/oauth/token`, formOf({ client_id: clientId, ...fields })));
}

/** Runs the code flow of a registered client on the real pages, for MCP by default; returns the token response. */
export async function connectRegistered(
  service: TestService,
  client: RegisteredClient,
  user: TestUser,
  { resource = service.urls.mcp, scope, ...choice }: { resource?: string; scope?: string } & Choice = {},
): Promise<Answer> {
  const redirect_uri = client.redirectUri;
  const changes = { redirect_uri, resource, scope };
  const code = await codeFor(service, client, user, { changes, ...choice });
  return requestTokens(service, client, { ...redemptionOf(code), redirect_uri, resource });
}
