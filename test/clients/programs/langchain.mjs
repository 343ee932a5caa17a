import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { createProvider } from "./authorization.mjs";

const url = process.argv[2];
const authProvider = await createProvider();
const returned = authProvider.callback();
await auth(authProvider, { serverUrl: url });
const authorizationCode = (await returned).get("code");
await auth(authProvider, { serverUrl: url, authorizationCode });
const client = new MultiServerMCPClient({
  mcpServers: { linkgate: { transport: "http", url, authProvider } },
});
const tools = await client.getTools();
console.log(JSON.stringify(await tools.find(({ name }) => name.endsWith("whoami")).invoke({})));
await client.close();
