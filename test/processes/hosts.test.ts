import type { Readable } from "node:stream";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { apiAt } from "../harness/clients/api.ts";
import { openConsent } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { temporaryFolder } from "../harness/folder.ts";
import { freePort } from "../harness/port.ts";
import { Program, ROOT, stopPrograms } from "../harness/program.ts";
import { startPublisher } from "../harness/publisher.ts";
import { startTestService, type TestService } from "../harness/service.ts";

const DOCUMENT = "https://host.example/client.json";

const publisher = await startPublisher(["host.example"]);
const open = await startTestService({ ...publisher.settings, CIMD: "any" }, publisher.connections);
const standard = await startTestService(); // no setting changed
const redirect_uris = ["http://localhost/oauth/callback", "http://127.0.0.1/oauth/callback"];

/** Creates an organization with a redirect URI of the tools, and a user. */
async function prepare(service: TestService) {
  const organization = await service.createOrganization();
  await service.storage.clients.setRedirectUris(organization.id, redirect_uris, OPERATOR);
  return { service, organization, user: await service.createUser([organization.id]) };
}

const withDocuments = await prepare(open);
const anyClient = { allowedClients: "any" } as const;
await open.storage.organizationSettings.change(withDocuments.organization.id, anyClient, OPERATOR);
const withClient = await prepare(standard);
const { organization } = withClient;
const grant_types = ["authorization_code", "refresh_token"];
publisher.publish(DOCUMENT, { body: { client_id: DOCUMENT, redirect_uris, grant_types } });
const token = await standard.token(organization);
await apiAt(standard.url, token).createLink({ slug: "inspected" });
test.after.always(async () => {
  stopPrograms();
  publisher.close();
  await Promise.all([open.close(), standard.close()]);
});

// No browser opens: the test takes the URL from the output.
const environment = () => ({
  PATH: process.env.PATH ?? "",
  HOME: temporaryFolder("hosts"),
  BROWSER: "true",
  MCP_AUTO_OPEN_ENABLED: "true",
  MCP_INSPECTOR_SECRET_STORE: "memory",
});

const AUTHORIZATION = /http:\/\/\S+\/oauth\/authorize\?\S+/;

/** Does what the user does in the browser that a program asks for, up to the callback of the program. */
async function allowAccess({ service, user }: typeof withClient, url: string): Promise<void> {
  const browser = new TestBrowser(service.url);
  const callback = await browser.press(await openConsent(browser, user, url), "Allow");
  const answer = await fetch(callback.url);
  if (!answer.ok) throw new Error(`the callback was answered with ${answer.status}`);
}

const INSPECTOR = `${ROOT}node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js`;
const runInspector = (...args: string[]) => {
  const target = ["--server-url", standard.urls.mcp, "--transport", "http", "--format", "json"];
  const options = { settings: environment() };
  return new Program(process.execPath, [INSPECTOR, "--cli", ...target, ...args], options);
};

test("mcp-remote connects with its metadata document", async (t) => {
  const proxy = `${ROOT}node_modules/mcp-remote/dist/proxy.js`;
  const port = String(await freePort());
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [proxy, open.urls.mcp, port, "--client-metadata-url", DOCUMENT],
    env: environment(),
    stderr: "pipe",
  });
  const client = new Client({ name: "desktop app", version: "1" });
  const connected = client.connect(transport);
  let output = "";
  for await (const chunk of transport.stderr as Readable) {
    output += chunk;
    const [url] = AUTHORIZATION.exec(output) ?? [];
    if (!url) continue;
    await allowAccess(withDocuments, url);
    break;
  }
  await connected;
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, { client_id: DOCUMENT, user_id: withDocuments.user.id });

  // What hosts offer their users beside tools.
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: String(resources[0]?.uri) });
  t.like(contents[0], { mimeType: "text/markdown" });
  const ref = { type: "ref/prompt", name: "weekly_report" } as const;
  const { messages } = await client.getPrompt({ name: ref.name });
  t.is(messages.length, 1);
  const { completion } = await client.complete({ ref, argument: { name: "tag", value: "" } });
  t.false(completion.hasMore);
  await client.close();
});

test("the Inspector’s command line connects with the organization’s client", async (t) => {
  const { clientId, clientSecret } = organization;
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  const identity = ["--callback-url", callback, "--client-id", clientId, "--client-secret", clientSecret];
  const call = ["--method", "tools/call", "--tool-name", "whoami"];
  const program = runInspector(...identity, ...call);
  const [url] = await program.says(AUTHORIZATION, "stderr");
  await allowAccess(withClient, url);
  const { code, stdout, stderr } = await program.ended;
  t.is(code, 0, stderr);
  t.like(JSON.parse(stdout).result.structuredContent, { client_id: clientId, user_id: withClient.user.id });
});

for (const era of ["legacy", "modern"])
  test(`the Inspector’s command line reads a resource in a ${era} revision`, async (t) => {
    const header = ["--protocol-era", era, "--header", `Authorization: Bearer ${token}`];
    const call = ["--method", "resources/read", "--uri", "linkgate://links/inspected"];
    const program = runInspector(...header, ...call);
    const { code, stdout, stderr } = await program.ended;
    t.is(code, 0, stderr);
    t.is(JSON.parse(JSON.parse(stdout).result.contents[0].text).slug, "inspected");
  });
