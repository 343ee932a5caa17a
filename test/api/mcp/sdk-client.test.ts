import {
  Client,
  ClientCredentialsProvider,
  DpopSession,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { ALL_ERAS, ERAS, type Era } from "../../harness/clients/mcp.ts";
import { freePort } from "../../harness/program.ts";
import { bearer, startTestService, type TestOrganization, type TestService } from "../../harness/service.ts";

const service = await startTestService();
const port = await freePort();
const elsewhere = await startTestService({
  PORT: String(port),
  MCP_URL: `http://127.0.0.1:${port}/agents/v2`,
});

/** Connects the SDK's client with credentials, and with its own DPoP if there is an algorithm. Records what it sends. */
async function connect(
  t: ExecutionContext,
  { url, urls }: TestService,
  app: TestOrganization,
  era: Era,
  alg?: "ES256" | "EdDSA",
) {
  const provider = new ClientCredentialsProvider({ ...app, expectedIssuer: url });
  const session = alg && (await DpopSession.create({ alg }));
  const authProvider = session ? Object.assign(provider, { dpop: () => session }) : provider;
  const sent: { path: string; scheme: string | undefined }[] = [];
  const transport = new StreamableHTTPClientTransport(new URL(urls.mcp), {
    authProvider,
    fetch: (input, init) => {
      const authorization = new Headers(init?.headers).get("authorization");
      sent.push({ path: new URL(input).pathname, scheme: authorization?.split(" ")[0] });
      return fetch(input, init);
    },
  });
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: ERAS[era] } });
  await client.connect(transport);
  t.teardown(() => client.close());
  const { pathname } = new URL(urls.mcp);
  const schemes = () => new Set(sent.filter(({ path }) => path === pathname).map(({ scheme }) => scheme));
  return { client, provider, pathname, schemes, paths: () => sent.map(({ path }) => path) };
}

for (const era of ALL_ERAS) {
  test(`${era}: a client with only its credentials and the MCP URL discovers the rest from the 401`, async (t) => {
    for (const at of [service, elsewhere]) {
      const app = await at.createOrganization();
      const { client, provider, pathname, paths } = await connect(t, at, app, era);
      const args = { url: "https://example.com" };
      const { structuredContent } = await client.callTool({ name: "create_link", arguments: args });
      t.like(structuredContent, { ...args, created_by: app.clientId });
      t.deepEqual(paths().slice(0, 4), [
        pathname,
        `/.well-known/oauth-protected-resource${pathname}`,
        "/.well-known/oauth-authorization-server",
        "/oauth/token",
      ]);
      t.is(provider.tokens()?.scope, "links:read links:write", "the scopes named by the challenge");
      const headers = bearer(provider.tokens()?.access_token ?? "");
      t.is((await fetch(`${at.url}/v1/links`, { headers })).status, 401, "it is for MCP only");
    }
  });

  for (const alg of ["ES256", "EdDSA"] as const)
    test(`${era}: the SDK's client uses DPoP with ${alg} where it is required`, async (t) => {
      // A proof names the URL of MCP, which may have another host and path.
      for (const at of [service, elsewhere]) {
        const app = await at.createOrganization();
        await at.storage.organizationSettings.change(app.id, { requiresDpop: true }, OPERATOR);
        const { client, provider, schemes } = await connect(t, at, app, era, alg);
        for (const slug of ["one", "two"]) {
          const args = { url: `https://example.com/${slug}` };
          const { structuredContent } = await client.callTool({ name: "create_link", arguments: args });
          t.like(structuredContent, { url: args.url, created_by: app.clientId });
        }
        t.deepEqual([...schemes()], [undefined, "DPoP"], "the first request has no token");
        const token = provider.tokens()?.access_token ?? "";
        t.is(provider.tokens()?.token_type, "DPoP");
        t.is((await fetch(`${at.url}/v1/links`, { headers: bearer(token) })).status, 401);
      }
    });
}
