import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { connectMcp } from "../../harness/clients/mcp.ts";
import { connectRegistered, postRegistration, requestTokens } from "../../harness/clients/registration.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
// They are websites, which an organization has to accept.
await service.storage.organizationSettings.change(organization.id, { allowedClients: "any" }, OPERATOR);
const user = await service.createUser([organization.id], undefined, "owner");
test.after.always(() => service.close());

const COMMON = { grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] };

/**
 * What chat and automation servers that people run themselves register, read from their sources in November 2026; of
 * LibreChat, from a copy under another name.
 */
const BODIES: Record<string, { redirect_uris: [string]; scope?: string; [member: string]: unknown }> = {
  LibreChat: {
    ...COMMON,
    client_name: "LibreChat MCP Client",
    redirect_uris: ["https://chat.example.com/api/mcp/linkgate/oauth/callback"],
    token_endpoint_auth_method: "client_secret_basic",
    scope: "links:read links:write",
  },
  "LibreChat with a server that has no client_secret_basic": {
    ...COMMON,
    client_name: "LibreChat MCP Client",
    redirect_uris: ["https://chat.example.com/api/mcp/linkgate/oauth/callback"],
    token_endpoint_auth_method: "client_secret_post",
    scope: "links:read links:write",
  },
  "Open WebUI": {
    ...COMMON,
    client_name: "Open WebUI",
    redirect_uris: ["https://chat.example.com/oauth/clients/mcp:linkgate/callback"],
    token_endpoint_auth_method: "client_secret_post",
    scope:
      "openid offline_access links:read links:write webhooks:read webhooks:write domains:read domains:write",
  },
  "Open WebUI with a newer SDK": {
    ...COMMON,
    client_name: "Open WebUI",
    redirect_uris: ["https://chat.example.com/oauth/clients/mcp:linkgate/callback"],
  },
  n8n: {
    ...COMMON,
    client_name: "n8n",
    client_uri: "https://n8n.io/",
    redirect_uris: ["https://n8n.example.com/rest/oauth2-credential/callback"],
    token_endpoint_auth_method: "none",
    scope: "links:read links:write",
  },
  "n8n with a server that lists no public clients": {
    ...COMMON,
    client_name: "n8n",
    client_uri: "https://n8n.io/",
    redirect_uris: ["https://n8n.example.com/rest/oauth2-credential/callback"],
    token_endpoint_auth_method: "client_secret_basic",
  },
};

for (const [host, metadata] of Object.entries(BODIES)) {
  test(`${host} registers as it is, connects, refreshes and calls a tool`, async (t) => {
    const { status, body, text } = await postRegistration(service, metadata);
    t.is(status, 201, text);
    const { redirect_uris, client_name } = metadata;
    t.like(body, { client_name, redirect_uris, token_endpoint_auth_method: "none" } as object);
    t.false("client_secret" in body);
    const client = { clientId: String(body.client_id), redirectUri: redirect_uris[0] };
    const { scope } = metadata;
    const tokens = await connectRegistered(service, client, user, scope ? { scope } : {});
    t.is(tokens.status, 200, tokens.text);
    const refreshed = await requestTokens(service, client, {
      grant_type: "refresh_token",
      refresh_token: String(tokens.body.refresh_token),
    });
    t.is(refreshed.status, 200, refreshed.text);
    const mcp = await connectMcp(service.urls.mcp, String(refreshed.body.access_token));
    const { structuredContent } = await mcp.callTool({ name: "whoami", arguments: {} });
    t.like(structuredContent, { client_id: client.clientId, user_id: user.id });
    await mcp.close();
  });
}
