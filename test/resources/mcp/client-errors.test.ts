import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { addressOf, startServer, stopPrograms } from "../../harness/program.ts";
import { bearer, populate } from "../../harness/service.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-mcp-errors-"));
const settings = {
  PORT: "0",
  DATABASE_URL: `sqlite:${folder}/mcp.sqlite`,
  ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64url"),
};
const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
await storage.migrate();
const { client } = await storage.organizations.create("Agents", "growth", OPERATOR);
await storage.close();
if (!client) throw new Error("no client was created");
const server = startServer({ settings, cwd: folder });
const url = await addressOf(server);
const auth = bearer(await populate(url, storage).token(client));
test.after.always(() => {
  stopPrograms();
  rmSync(folder, { recursive: true, force: true });
});

test("requests that are the client's mistake are answered and not logged as errors", async (t) => {
  const { message, headers } = modernRequest("tools/list");
  const future = structuredClone(message);
  future.params._meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01";
  const mistakes: [body: unknown, headers: object][] = [
    [future, { ...headers, "mcp-protocol-version": "2099-01-01" }],
    [message, { ...headers, "mcp-protocol-version": "2099-01-01" }],
    [message, { ...headers, "mcp-method": "tools/call" }],
    [{ jsonrpc: "2.0", id: 1, method: "tools/list" }, { accept: "text/html" }],
    [message, { ...headers, "content-type": "text/plain" }],
    ["{", headers],
    [{ jsonrpc: "2.0", id: 1 }, {}],
  ];
  for (const [body, extra] of mistakes) {
    const { status, text } = await postMcp(`${url}/mcp`, body, { ...auth, ...extra });
    t.true(status >= 400 && status < 500, `${status} ${text.slice(0, 200)}`);
  }
  const { stdout, stderr } = await server.stop();
  t.notRegex(stdout + stderr, /"level":"error"|unexpected error/);
  t.regex(stdout, /"\/mcp"/, "the requests themselves are logged");
});
