import {
  Client,
  ClientCredentialsProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import test from "ava";
import { ALL_ERAS, ERAS } from "../../harness/clients/mcp.ts";
import { freePort } from "../../harness/port.ts";
import { startTestService, type TestService } from "../../harness/service.ts";

const port = await freePort();
const services: [name: string, service: TestService][] = [
  ["/mcp", await startTestService()],
  [
    "another host and path",
    await startTestService({ PORT: String(port), MCP_URL: `http://127.0.0.1:${port}/agents/v2` }),
  ],
];
test.after.always(() => Promise.all(services.map(([, service]) => service.close())));

for (const [name, service] of services) {
  for (const era of ALL_ERAS) {
    test(`${era}: a client with only its credentials and the MCP URL (${name}) discovers the rest from the 401`, async (t) => {
      const app = await service.createOrganization();
      const provider = new ClientCredentialsProvider({ ...app, expectedIssuer: service.url });
      const asked: string[] = [];
      const transport = new StreamableHTTPClientTransport(new URL(service.urls.mcp), {
        authProvider: provider,
        fetch: (input, init) => {
          asked.push(new URL(input).pathname);
          return fetch(input, init);
        },
      });
      const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: ERAS[era] } });
      await client.connect(transport);
      const { structuredContent } = await client.callTool({
        name: "create_link",
        arguments: { url: "https://example.com" },
      });
      t.like(structuredContent, { url: "https://example.com", created_by: app.clientId });
      const { pathname } = new URL(service.urls.mcp);
      t.deepEqual(asked.slice(0, 4), [
        pathname,
        `/.well-known/oauth-protected-resource${pathname}`,
        "/.well-known/oauth-authorization-server",
        "/oauth/token",
      ]);
      t.is(provider.tokens()?.scope, "links:read links:write", "the scopes named by the challenge");
      await client.close();
    });
  }

  test(`a token obtained for MCP (${name}) is rejected by the API`, async (t) => {
    const app = await service.createOrganization();
    const provider = new ClientCredentialsProvider({ ...app, expectedIssuer: service.url });
    const client = new Client({ name: "test", version: "1" });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(service.urls.mcp), { authProvider: provider }),
    );
    const headers = { authorization: `Bearer ${provider.tokens()?.access_token}` };
    t.is((await fetch(`${service.url}/v1/links`, { headers })).status, 401);
    await client.close();
  });
}

test("a client with a wrong secret gets an invalid_client error", async (t) => {
  const [[, service]] = services as [(typeof services)[number]];
  const app = await service.createOrganization();
  const provider = new ClientCredentialsProvider({
    ...app,
    clientSecret: "lgs_wrong",
    expectedIssuer: service.url,
  });
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(service.urls.mcp), {
    authProvider: provider,
  });
  await t.throwsAsync(client.connect(transport));
  t.is(provider.tokens(), undefined);
});
