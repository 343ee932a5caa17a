import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

// What a host that knows local servers only does with mcp-remote.
const transport = new StdioClientTransport({
  command: "mcp-remote",
  args: [process.argv[2]],
  env: process.env,
});
const client = new Client({ name: "A program", version: "1" });
await client.connect(transport, { timeout: 120_000 });
console.log(JSON.stringify(await client.callTool({ name: "whoami", arguments: {} })));
await client.close();
