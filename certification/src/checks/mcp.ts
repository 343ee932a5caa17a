import type { Check } from "../check.ts";
import { type Conversation, encode, type Options } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

const VERSION = "2025-06-18";

function initialize(conversation: Conversation, { headers }: Options = {}, query = "") {
  const mcp = needs(conversation.target.mcp, "no MCP endpoint is configured");
  const params = {
    protocolVersion: VERSION,
    capabilities: {},
    clientInfo: { name: "conformance", version: "1" },
  };
  return conversation.send(mcp + query, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
}

async function tokenOf(conversation: Conversation): Promise<string> {
  const mcp = needs(conversation.target.mcp, "no MCP endpoint is configured");
  const { status, body } = await conversation.token({ resource: mcp });
  expect(status === 200, "the client gets no token for MCP");
  return String(body.access_token);
}

const AUTHORIZATION = "MCP 2025-06-18, Authorization";

export const mcpChecks: Check[] = [
  {
    id: "mcp-challenge",
    title: "Without a token, MCP responds with 401 and names its metadata",
    clause: `${AUTHORIZATION}; RFC 9728 §5.1`,
    async run(conversation) {
      const { status, headers } = await initialize(conversation);
      expect(status === 401, `the response is ${status}`);
      expect(
        /resource_metadata="[^"]+"/.test(headers.get("www-authenticate") ?? ""),
        "resource_metadata is missing",
      );
    },
  },
  {
    id: "mcp-metadata",
    title: "The metadata of the MCP endpoint names it and its authorization server",
    clause: `${AUTHORIZATION}; RFC 9728 §3.3`,
    async run(conversation) {
      const { headers } = await initialize(conversation);
      const [, url] = /resource_metadata="([^"]+)"/.exec(headers.get("www-authenticate") ?? "") ?? [];
      const { body } = await conversation.send(needs(url, "resource_metadata is missing"));
      expect(body.resource === conversation.target.mcp, `resource is ${body.resource}`);
      const servers = body.authorization_servers as string[] | undefined;
      expect(servers?.includes(conversation.target.issuer), "authorization_servers does not list the issuer");
    },
  },
  {
    id: "mcp-pkce",
    title: "The authorization server of MCP announces PKCE with S256",
    clause: AUTHORIZATION,
    async run({ target }) {
      needs(target.mcp, "no MCP endpoint is configured");
      expect(target.metadata.code_challenge_methods_supported?.includes("S256"), "S256 is not listed");
    },
  },
  {
    id: "mcp-registration",
    title: "Clients without a registration are supported",
    clause: AUTHORIZATION,
    isRecommended: true,
    async run({ target: { mcp, metadata } }) {
      needs(mcp, "no MCP endpoint is configured");
      const isSupported =
        metadata.client_id_metadata_document_supported === true || metadata.registration_endpoint;
      expect(isSupported, "neither metadata documents nor dynamic registration are supported");
    },
  },
  {
    id: "mcp-token",
    title: "MCP accepts a token for its resource",
    clause: AUTHORIZATION,
    async run(conversation) {
      const headers = { authorization: `Bearer ${await tokenOf(conversation)}` };
      const { status } = await initialize(conversation, { headers });
      expect(status === 200, `the response is ${status}`);
    },
  },
  {
    id: "mcp-audience",
    title: "MCP rejects a token for another resource",
    clause: `${AUTHORIZATION}; RFC 8707 §2`,
    async run(conversation) {
      const { mcp, audience } = conversation.target;
      needs(audience && audience !== mcp, "no other resource is configured");
      const headers = { authorization: `Bearer ${await conversation.accessToken()}` };
      const { status } = await initialize(conversation, { headers });
      expect(status === 401, `the response is ${status}`);
    },
  },
  {
    id: "mcp-invalid-token",
    title: "MCP rejects an unknown token with 401",
    clause: AUTHORIZATION,
    async run(conversation) {
      const { status } = await initialize(conversation, {
        headers: { authorization: "Bearer unknown-token" },
      });
      expect(status === 401, `the response is ${status}`);
    },
  },
  {
    id: "mcp-query",
    title: "MCP doesn't accept a token in the URL",
    clause: AUTHORIZATION,
    async run(conversation) {
      const query = `?${encode({ access_token: await tokenOf(conversation) })}`;
      const { status } = await initialize(conversation, {}, query);
      expect(status === 401, `the response is ${status}`);
    },
  },
  {
    id: "mcp-origin",
    title: "MCP refuses requests of foreign web pages",
    clause: "MCP 2025-06-18, Transports",
    async run(conversation) {
      const authorization = `Bearer ${await tokenOf(conversation)}`;
      const { status } = await initialize(conversation, {
        headers: { authorization, origin: "https://evil.example" },
      });
      expect(status >= 400, `the response is ${status}`);
    },
  },
];
