import { auth, createMCPClient } from "@ai-sdk/mcp";
import { createProvider } from "./authorization.mjs";

const url = process.argv[2];
const authProvider = await createProvider();
const returned = authProvider.callback();
await auth(authProvider, { serverUrl: url });
const callback = await returned;
await auth(authProvider, {
  serverUrl: url,
  authorizationCode: callback.get("code"),
  callbackState: callback.get("state"),
  callbackIssuer: callback.get("iss"),
});
const client = await createMCPClient({ transport: { type: "http", url, authProvider } });
const { whoami } = await client.tools();
console.log(JSON.stringify(await whoami.execute({}, { toolCallId: "call_1", messages: [] })));
await client.close();
