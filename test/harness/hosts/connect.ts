import { hash, randomInt } from "node:crypto";
import type { ExecutionContext } from "ava";
import { openConsent } from "../clients/authorization.ts";
import type { Fields } from "../clients/authorization-request.ts";
import { authorizeUrl, formOf } from "../clients/authorization-request.ts";
import { challengeOf } from "../clients/challenge.ts";
import { withAssertion } from "../clients/client-key.ts";
import { type SigningKey, signAssertion } from "../clients/document-client.ts";
import { connectMcp, postMcp } from "../clients/mcp.ts";
import type { Answer } from "../clients/oauth.ts";
import { read, redemptionOf } from "../clients/oauth.ts";
import { TestBrowser } from "../clients/test-browser.ts";
import { postForm, type TestService, type TestUser } from "../service.ts";
import type { Host } from "./host.ts";

type Connection = { service: TestService; host: Host; user: TestUser; key: SigningKey };
type Client = { clientId: string; redirectUri: string };

/**
 * Connects a host end to end, as its user sees it: the URL of the MCP server, sign-in and consent on the real pages,
 * tokens, a refresh, and a tool.
 */
export async function connectHost(t: ExecutionContext, connection: Connection, template: string) {
  const { service, host, user } = connection;
  const found = await discoverServer(t, service, host);
  const ofServer = (text: string) => text.replace("<id>", serverIdOf(found.resource));
  const redirectUri = ofServer(template).replace("<port>", String(randomInt(49_152, 65_536)));
  const client = { clientId: ofServer(await identify(t, host, found)), redirectUri };
  const code = await authorize(t, connection, client, found);
  const redemption = { ...redemptionOf(code), redirect_uri: redirectUri };
  const tokens = await requestTokens(connection, client, found, redemption);
  t.is(tokens.status, 200, tokens.text);
  const refreshed = await requestTokens(connection, client, found, {
    grant_type: "refresh_token",
    refresh_token: String(tokens.body.refresh_token),
  });
  t.is(refreshed.status, 200, refreshed.text);
  if (host.identifies_by === "registration")
    t.not(refreshed.body.refresh_token, tokens.body.refresh_token, "that of a public client is rotated");
  const mcp = await connectMcp(found.resource, String(refreshed.body.access_token));
  const { structuredContent } = await mcp.callTool({ name: "whoami", arguments: {} });
  await mcp.close();
  t.like(structuredContent, { client_id: client.clientId, user_id: user.id });
}

/** Returns the ID that Codex derives from the URL of a server. */
export function serverIdOf(url: string): string {
  return hash("sha256", url, "buffer").subarray(0, 9).toString("base64url");
}

async function identify(t: ExecutionContext, host: Host, found: Discovered): Promise<string> {
  if (host.identifies_by === "document") return host.document.client_id;
  const { status, body, text } = await read(
    fetch(found.registration_endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(host.registration),
    }),
  );
  t.is(status, 201, text);
  t.is(body.token_endpoint_auth_method, "none");
  t.false("client_secret" in body);
  return String(body.client_id);
}

async function authorize(
  t: ExecutionContext,
  { service, host, user }: Connection,
  { clientId, redirectUri }: Client,
  { authorization_endpoint, scope, ...found }: Discovered,
): Promise<string> {
  const sent = { scope: host.sends.scope ? scope : undefined, prompt: host.sends.prompt };
  const changes = { redirect_uri: redirectUri, resource: resourceOf(host, found), ...sent };
  const request = authorizeUrl(service, { clientId }, changes);
  const browser = new TestBrowser(service.url);
  const consent = await openConsent(browser, user, authorization_endpoint + new URL(request).search);
  if (host.identifies_by === "document") {
    const { text } = consent.html;
    t.true(text.includes(`Identity published by ${new URL(clientId).host}`), text);
    t.regex(text, /his app is on linkgate’s list of known apps/);
  }
  const callback = new URL((await browser.press(consent, "Allow")).url);
  t.true(callback.href.startsWith(redirectUri), callback.href);
  t.is(callback.searchParams.get("state"), "a-state");
  t.is(callback.searchParams.get("iss"), service.url);
  return callback.searchParams.get("code") ?? "";
}

async function requestTokens(
  { service, host, key }: Connection,
  client: Client,
  { token_endpoint, scope, ...found }: Discovered,
  fields: Fields,
): Promise<Answer> {
  const isConfidential =
    host.identifies_by === "document" && host.document.token_endpoint_auth_method === "private_key_jwt";
  const repeated = { resource: resourceOf(host, found), scope: host.sends.scope_again ? scope : undefined };
  const all = { client_id: client.clientId, ...repeated, ...fields };
  const form = isConfidential
    ? withAssertion(await signAssertion(service, { ...client, key }), all)
    : formOf(all);
  return read(postForm(token_endpoint, form));
}

const resourceOf = ({ sends }: Host, { resource }: { resource: string }) =>
  sends.resource === false ? undefined : resource;

type Discovered = Awaited<ReturnType<typeof discoverServer>>;

async function discoverServer(t: ExecutionContext, { urls }: TestService, host: Host) {
  const refused = await postMcp(urls.mcp, { jsonrpc: "2.0", id: 1, method: "initialize" });
  t.is(refused.status, 401);
  const { resource_metadata = "", scope = "" } = challengeOf(refused) ?? {};
  const { body: resource } = await read(fetch(resource_metadata));
  t.is(resource.resource, urls.mcp, "the resource is the URL that the user has entered");
  const [issuer] = resource.authorization_servers as string[];
  const answers = await Promise.all(host.metadata.map((path) => read(fetch(issuer + path))));
  const { body: metadata = {} } = answers.find(({ status }) => status === 200) ?? {};
  t.is(metadata.issuer, issuer);
  meetsExpectations(t, host, metadata);
  return {
    resource: urls.mcp,
    scope,
    authorization_endpoint: String(metadata.authorization_endpoint),
    token_endpoint: String(metadata.token_endpoint),
    registration_endpoint: String(metadata.registration_endpoint),
  };
}

function meetsExpectations(t: ExecutionContext, host: Host, metadata: Record<string, unknown>): void {
  t.true((metadata.code_challenge_methods_supported as string[]).includes("S256"));
  // Without it, ChatGPT and Codex identify themselves by a document for each server.
  t.true(metadata.authorization_response_iss_parameter_supported);
  if (host.identifies_by === "registration")
    return void t.is(typeof metadata.registration_endpoint, "string");
  t.true(metadata.client_id_metadata_document_supported);
  const methods = metadata.token_endpoint_auth_methods_supported as string[];
  t.true(methods.includes(host.document.token_endpoint_auth_method));
}
