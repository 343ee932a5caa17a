import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";

export type Snippet = { name: string; title: string; note: string; code: string };

export function snippetsOf({ base, api, mcp }: PublicUrls, clientId: string): Snippet[] {
  // openid-client rejects http URLs, which are for local development, unless allowed.
  const options = base.startsWith("http:")
    ? "\n  undefined,\n  { execute: [client.allowInsecureRequests] },"
    : "";
  return [
    {
      name: "curl",
      title: "curl",
      note: "Run export CLIENT_SECRET='…' in a shell, then paste this.",
      code: `RESPONSE=$(curl -sS --fail-with-body ${base}/oauth/token \\
  -d grant_type=client_credentials \\
  -d client_id=${clientId} \\
  -d client_secret="\${CLIENT_SECRET:?}") || echo "$RESPONSE" >&2
TOKEN=$(echo "$RESPONSE" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')

curl -sS --fail-with-body ${api}/links \\
  -H "Authorization: Bearer \${TOKEN:?}" \\
  -H "Content-Type: application/json" \\
  -d '{"url": "https://example.com/"}'`,
    },
    {
      name: "client",
      title: "TypeScript (@linkgate/client)",
      note: `Run npm install ${base}/client.tgz, save this as link.mts, and run it with Node.js 24.`,
      code: `import { createClient } from "@linkgate/client";

const linkgate = createClient({
  baseUrl: "${base}",
  clientId: "${clientId}",
  clientSecret: process.env.CLIENT_SECRET ?? "",
});

const link = await linkgate.createLink({ url: "https://example.com/" });
console.log(link);`,
    },
    {
      name: "typescript",
      title: "TypeScript (openid-client)",
      note: "Run npm install openid-client, save this as link.mts, and run it with Node.js 24.",
      code: `import * as client from "openid-client";

const config = await client.discovery(
  new URL("${base}"),
  "${clientId}",
  process.env.CLIENT_SECRET,${options}
);
const { access_token } = await client.clientCredentialsGrant(config);

const response = await fetch("${api}/links", {
  method: "POST",
  headers: { authorization: \`Bearer \${access_token}\`, "content-type": "application/json" },
  body: JSON.stringify({ url: "https://example.com/" }),
});
console.log(await response.json());`,
    },
    {
      name: "python",
      title: "Python (Authlib)",
      note: "Run pip install authlib requests, save this as link.py, and run it with Python 3.",
      code: `import os

from authlib.integrations.requests_client import OAuth2Session

session = OAuth2Session("${clientId}", os.environ["CLIENT_SECRET"])
session.fetch_token("${base}/oauth/token", grant_type="client_credentials")

response = session.post("${api}/links", json={"url": "https://example.com/"})
print(response.json())`,
    },
    {
      name: "mcp",
      title: "MCP (TypeScript SDK)",
      note: "Run npm install @modelcontextprotocol/client, save this as agent.mts, and run it with Node.js 24.",
      code: `import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const authProvider = new ClientCredentialsProvider({
  clientId: "${clientId}",
  clientSecret: process.env.CLIENT_SECRET ?? "",
  expectedIssuer: "${base}",
});
const client = new Client({ name: "my-agent", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL("${mcp}"), { authProvider }));

const { structuredContent } = await client.callTool({
  name: "create_link",
  arguments: { url: "https://example.com/" },
});
console.log(structuredContent);
await client.close();`,
    },
  ];
}
