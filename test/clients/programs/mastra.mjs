import { MCPClient, MCPOAuthClientProvider } from "@mastra/mcp";
import { openInBrowser } from "./authorization.mjs";

const { CLIENT_ID, CLIENT_SECRET, ISSUER } = process.env;
const redirectUrl = "http://127.0.0.1:8976/callback";
const authProvider = new MCPOAuthClientProvider({
  redirectUrl,
  clientMetadata: { client_name: "A program", redirect_uris: [redirectUrl] },
  clientInformation: { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, issuer: ISSUER },
  onRedirectToAuthorization: openInBrowser,
});
const client = new MCPClient({ servers: { linkgate: { url: new URL(process.argv[2]), authProvider } } });
await client.authenticate("linkgate");
const { linkgate_whoami } = await client.listTools();
console.log(JSON.stringify(await linkgate_whoami.execute({}, {})));
await client.disconnect();
