import type { ExecutionContext } from "ava";
import { MCP_HEADERS } from "../clients/mcp.ts";
import { read } from "../clients/oauth.ts";
import type { TestService } from "../service.ts";
import type { Host } from "./host.ts";

/** What a host learns before it opens a browser. */
export type Discovered = {
  resource: string;
  scope: string;
  authorization_endpoint: string;
  token_endpoint: string;
  registration_endpoint: string | undefined;
};

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "host", version: "1" } },
};

/** Discovers a server from the URL that a user has entered, like a host does. */
export async function discoverServer(
  t: ExecutionContext,
  { urls }: TestService,
  host: Host,
): Promise<Discovered> {
  const body = JSON.stringify(INITIALIZE);
  const challenge = await read(fetch(urls.mcp, { method: "POST", headers: MCP_HEADERS, body }));
  t.is(challenge.status, 401);
  const header = challenge.headers.get("www-authenticate") ?? "";
  const resourceMetadata = parameterOf(header, "resource_metadata");
  const { body: resource } = await read(fetch(resourceMetadata));
  t.is(resource.resource, urls.mcp, "the resource is the URL that the user has entered");
  const [issuer] = resource.authorization_servers as string[];
  let metadata: Record<string, unknown> = {};
  for (const path of host.metadata) {
    const answer = await read(fetch(issuer + path));
    t.is(answer.status, 200, path);
    metadata = answer.body;
    t.is(metadata.issuer, issuer, "the issuer is the same string everywhere");
  }
  meetsExpectations(t, host, metadata);
  return {
    resource: urls.mcp,
    scope: parameterOf(header, "scope"),
    authorization_endpoint: String(metadata.authorization_endpoint),
    token_endpoint: String(metadata.token_endpoint),
    registration_endpoint: metadata.registration_endpoint as string | undefined,
  };
}

/** Asserts what hosts look for before they choose how to identify themselves. */
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

function parameterOf(header: string, name: string): string {
  return new RegExp(`${name}="([^"]*)"`).exec(header)?.[1] ?? "";
}
