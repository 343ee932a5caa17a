import { createHash, randomInt } from "node:crypto";
import type { ExecutionContext } from "ava";
import type { SigningKey } from "../clients/document-client.ts";
import { signAssertion } from "../clients/document-client.ts";
import { connectMcp } from "../clients/mcp.ts";
import { type Answer, type Fields, formOf, openConsent, pkce, read } from "../clients/oauth.ts";
import { TestBrowser } from "../clients/test-browser.ts";
import { postForm, type TestService, type TestUser } from "../service.ts";
import { type Discovered, discoverServer } from "./discovery.ts";
import type { Host } from "./host.ts";

type Connection = { service: TestService; host: Host; user: TestUser; key: SigningKey };
type Client = { clientId: string; redirectUri: string };

/**
 * Connects a host end to end, as its user sees it: the URL of the MCP server, sign-in and consent on the real pages,
 * tokens, a refresh, and a tool.
 */
export async function connectHost(
  t: ExecutionContext,
  connection: Connection,
  template: string,
): Promise<void> {
  const { service, host, user } = connection;
  const found = await discoverServer(t, service, host);
  const ofServer = (text: string) => text.replace("<id>", serverIdOf(found.resource));
  const redirectUri = ofServer(template).replace("<port>", String(randomInt(49_152, 65_536)));
  const client = { clientId: ofServer(await identify(t, host, found)), redirectUri };
  const { code, verifier } = await authorize(t, connection, client, found);
  const tokens = await requestTokens(connection, client, found, {
    grant_type: "authorization_code",
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  });
  t.is(tokens.status, 200, tokens.text);
  const refreshed = await requestTokens(connection, client, found, {
    grant_type: "refresh_token",
    refresh_token: String(tokens.body.refresh_token),
  });
  t.is(refreshed.status, 200, refreshed.text);
  const mcp = await connectMcp(found.resource, String(refreshed.body.access_token));
  const { structuredContent } = await mcp.callTool({ name: "whoami", arguments: {} });
  await mcp.close();
  t.like(structuredContent, { client_id: client.clientId, user_id: user.id });
}

/** Returns the ID that Codex derives from the URL of a server. */
export function serverIdOf(url: string): string {
  return createHash("sha256").update(url).digest().subarray(0, 9).toString("base64url");
}

/** Returns the client id of a host, which may have to register first. */
async function identify(t: ExecutionContext, host: Host, found: Discovered): Promise<string> {
  if (host.identifies_by === "document") return host.document.client_id;
  const { status, body, text } = await read(
    fetch(String(found.registration_endpoint), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(host.registration),
    }),
  );
  t.is(status, 201, text);
  return String(body.client_id);
}

async function authorize(
  t: ExecutionContext,
  { service, host, user }: Connection,
  { clientId, redirectUri }: Client,
  { authorization_endpoint, resource, scope }: Discovered,
): Promise<{ code: string; verifier: string }> {
  const { verifier, challenge } = await pkce();
  const query = formOf({
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "a-state",
    resource,
    scope: host.sends.scope ? scope : undefined,
    prompt: host.sends.prompt,
  });
  const browser = new TestBrowser(service.url);
  const consent = await openConsent(browser, user, `${authorization_endpoint}?${query}`);
  if (host.identifies_by === "document") {
    const { text } = consent.html;
    t.true(text.includes(`Identity published by ${new URL(clientId).host}`), text);
    t.regex(text, /his app is on linkgate’s list of known apps/);
  }
  const callback = new URL((await browser.press(consent, "Allow")).url);
  t.true(callback.href.startsWith(redirectUri), callback.href);
  t.is(callback.searchParams.get("state"), "a-state");
  t.is(callback.searchParams.get("iss"), service.url);
  return { code: callback.searchParams.get("code") ?? "", verifier };
}

async function requestTokens(
  { service, host, key }: Connection,
  client: Client,
  { token_endpoint, resource }: Discovered,
  fields: Fields,
): Promise<Answer> {
  const isConfidential =
    host.identifies_by === "document" && host.document.token_endpoint_auth_method === "private_key_jwt";
  const authentication = isConfidential
    ? {
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: await signAssertion(service, { ...client, key }),
      }
    : {};
  const form = formOf({ client_id: client.clientId, resource, ...authentication, ...fields });
  return read(postForm(token_endpoint, form));
}
