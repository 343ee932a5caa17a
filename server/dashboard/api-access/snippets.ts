import type { Addresses } from "../../resources/metadata.ts";

/** Something to paste, with where it goes. */
export type Snippet = { name: string; title: string; note: string; code: string };

/** A script that gets a token and makes a link, in three languages, and the entry for MCP hosts. */
export function snippetsOf(addresses: Addresses, clientId: string): Snippet[] {
  return [
    {
      name: "curl",
      title: "curl",
      note: "In a shell, after export CLIENT_SECRET='…'.",
      code: curl(addresses, clientId),
    },
    {
      name: "typescript",
      title: "TypeScript (openid-client)",
      note: "npm install openid-client, then save as link.ts and run it with Node 24.",
      code: typescript(addresses, clientId),
    },
    {
      name: "python",
      title: "Python (Authlib)",
      note: "pip install authlib requests, then save as link.py and run it with Python 3.",
      code: python(addresses, clientId),
    },
    {
      name: "mcp",
      title: "MCP hosts",
      note: `In the host's list of servers. Its redirect URI must be among yours (${MCP_REDIRECT} for this one); it asks for the secret when you connect, or is given it beside the client id.`,
      code: mcp(addresses, clientId),
    },
  ];
}

const MCP_PORT = 8976;
const MCP_REDIRECT = `http://localhost:${MCP_PORT}/callback`;

function curl({ base, api }: Addresses, clientId: string): string {
  return `TOKEN=$(curl -s ${base}/oauth/token \\
  -d grant_type=client_credentials \\
  -d client_id=${clientId} \\
  -d client_secret="$CLIENT_SECRET" |
  sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')

curl -s ${api}/links \\
  -H "Authorization: Bearer $TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '{"url": "https://example.com/"}'`;
}

function typescript({ base, api }: Addresses, clientId: string): string {
  // The library refuses plain http, which is for a machine of one's own.
  const options = base.startsWith("http:")
    ? "\n  undefined,\n  { execute: [client.allowInsecureRequests] },"
    : "";
  return `import * as client from "openid-client";

const config = await client.discovery(
  new URL("${base}"),
  "${clientId}",
  process.env.CLIENT_SECRET,${options}
);
const { access_token } = await client.clientCredentialsGrant(config);

const answer = await fetch("${api}/links", {
  method: "POST",
  headers: { authorization: \`Bearer \${access_token}\`, "content-type": "application/json" },
  body: JSON.stringify({ url: "https://example.com/" }),
});
console.log(await answer.json());`;
}

function python({ base, api }: Addresses, clientId: string): string {
  return `import os

from authlib.integrations.requests_client import OAuth2Session

session = OAuth2Session("${clientId}", os.environ["CLIENT_SECRET"])
session.fetch_token("${base}/oauth/token", grant_type="client_credentials")

answer = session.post("${api}/links", json={"url": "https://example.com/"})
print(answer.json())`;
}

function mcp({ mcp: url }: Addresses, clientId: string): string {
  const server = { type: "http", url, oauth: { clientId, callbackPort: MCP_PORT } };
  return JSON.stringify({ mcpServers: { linkgate: server } }, null, 2);
}
