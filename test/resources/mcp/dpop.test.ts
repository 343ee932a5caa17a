import {
  Client,
  ClientCredentialsProvider,
  DpopSession,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { ALL_ERAS, ERAS } from "../../harness/clients/mcp.ts";
import { bearer, startTestService, type TestOrganization } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

/** The SDK's provider of client credentials, with its own DPoP. */
async function providerFor(app: TestOrganization, alg: "ES256" | "EdDSA") {
  const session = await DpopSession.create({ alg });
  const provider = new ClientCredentialsProvider({ ...app, expectedIssuer: service.url });
  return Object.assign(provider, { dpop: () => session });
}

/** Connects the SDK's client, and records the schemes that it sends to MCP. */
async function connect(app: TestOrganization, alg: "ES256" | "EdDSA", era: keyof typeof ERAS) {
  const authProvider = await providerFor(app, alg);
  const schemes = new Set<string | undefined>();
  const transport = new StreamableHTTPClientTransport(new URL(service.urls.mcp), {
    authProvider,
    fetch: (input, init) => {
      const authorization = new Headers(init?.headers).get("authorization");
      if (String(input) === service.urls.mcp) schemes.add(authorization?.split(" ")[0]);
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
      await service.storage.dpopRequirement.set(app.id, true, OPERATOR);
      const { client, authProvider, schemes } = await connect(app, alg, era);
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
