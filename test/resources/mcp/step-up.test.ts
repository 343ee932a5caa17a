import { extractWWWAuthenticateParams } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import test from "ava";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
test.after.always(() => service.close());

/** Connects version 1 of the SDK with client credentials. It requests exactly the scopes of the latest challenge. */
async function connect(scope: string) {
  const provider = new ClientCredentialsProvider({
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    scope,
    expectedIssuer: service.url,
  });
  const requested: string[] = [];
  const transport = new StreamableHTTPClientTransport(new URL(service.urls.mcp), {
    authProvider: provider,
    async fetch(url, init) {
      const response = await fetch(url, init);
      const challenged = response.status === 403 && extractWWWAuthenticateParams(response).scope;
      if (challenged) provider.clientMetadata.scope = challenged;
      if (String(url).endsWith("/oauth/token")) requested.push(String(provider.clientMetadata.scope));
      return response;
    },
  });
  const client = new Client({ name: "test", version: "1.0.0" });
  // The SDK's own types don't allow `exactOptionalPropertyTypes`.
  await client.connect(transport as Transport);
  return { client, requested };
}

test("an SDK 1.x client that requests the scopes of each challenge keeps those that it had", async (t) => {
  const { client, requested } = await connect("links:read");
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await client.callTool({ name, arguments: args });
    t.falsy(result.isError, name);
  };
  await call("list_links");
  await call("create_link", { url: "https://example.com/step-up" });
  await call("list_webhooks");
  await call("create_link", { url: "https://example.com/kept" });
  await call("list_links");
  t.deepEqual(requested, ["links:read", "links:read links:write", "links:read links:write webhooks:read"]);
  await client.close();
});
