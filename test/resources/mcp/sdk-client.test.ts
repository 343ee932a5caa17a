import {
  Client,
  ClientCredentialsProvider,
  DpopSession,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { ALL_ERAS, ERAS, type Era } from "../../harness/clients/mcp.ts";
import { freePort } from "../../harness/port.ts";
import { bearer, startTestService, type TestOrganization, type TestService } from "../../harness/service.ts";

const port = await freePort();
const services: [name: string, service: TestService][] = [
  ["/mcp", await startTestService()],
  [
    "another host and path",
    await startTestService({ PORT: String(port), MCP_URL: `http://127.0.0.1:${port}/agents/v2` }),
  ],
];

const elsewherePort = await freePort();
const service = await startTestService();
const elsewhere = await startTestService({
  PORT: String(elsewherePort),
  MCP_URL: `http://127.0.0.1:${elsewherePort}/agents/v2`,
});

test.after.always(() => Promise.all(services.map(([, service]) => service.close())));
test.after.always(() => Promise.all([service.close(), elsewhere.close()]));

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

type Alg = "ES256" | "EdDSA";

/** The SDK's provider of client credentials, with its own DPoP. */
async function providerFor({ url }: TestService, app: TestOrganization, alg: Alg) {
  const session = await DpopSession.create({ alg });
  const provider = new ClientCredentialsProvider({ ...app, expectedIssuer: url });
  return Object.assign(provider, { dpop: () => session });
}

/** Connects the SDK's client, and records the schemes that it sends to MCP. */
async function connect(at: TestService, app: TestOrganization, alg: Alg, era: Era) {
  const authProvider = await providerFor(at, app, alg);
  const schemes = new Set<string | undefined>();
  const transport = new StreamableHTTPClientTransport(new URL(at.urls.mcp), {
    authProvider,
    fetch: (input, init) => {
      const authorization = new Headers(init?.headers).get("authorization");
      if (String(input) === at.urls.mcp) schemes.add(authorization?.split(" ")[0]);
      return fetch(input, init);
    },
  });
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: ERAS[era] } });
  await client.connect(transport);
  return { client, authProvider, schemes };
}

for (const era of ALL_ERAS) {
  for (const alg of ["ES256", "EdDSA"] as const) {
    test(`${era}: the SDK's client uses DPoP with ${alg} where it is required`, async (t) => {
      const app = await service.createOrganization();
      await service.storage.organizationSettings.change(app.id, { requiresDpop: true }, OPERATOR);
      const { client, authProvider, schemes } = await connect(service, app, alg, era);
      for (const slug of ["one", "two"]) {
        const args = { url: `https://example.com/${slug}` };
        const { structuredContent } = await client.callTool({ name: "create_link", arguments: args });
        t.like(structuredContent, { url: args.url, created_by: app.clientId });
      }
      await client.close();
      t.deepEqual([...schemes], [undefined, "DPoP"], "the first request has no token");
      const token = authProvider.tokens()?.access_token ?? "";
      t.is(authProvider.tokens()?.token_type, "DPoP");
      t.is((await fetch(`${service.url}/v1/links`, { headers: bearer(token) })).status, 401);
    });
  }
}

test("a proof names the URL of MCP where it has another host and path", async (t) => {
  const app = await elsewhere.createOrganization();
  const { client, schemes } = await connect(elsewhere, app, "ES256", "2026-07-28");
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, { client_id: app.clientId });
  t.true(schemes.has("DPoP"));
  await client.close();
});
