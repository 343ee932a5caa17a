import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { apiAt } from "../harness/clients/api.ts";
import { openConsent } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { freePort } from "../harness/port.ts";
import { Program, ROOT, stopPrograms } from "../harness/program.ts";
import { startPublisher } from "../harness/publisher.ts";
import { startTestService, type TestService } from "../harness/service.ts";

const DOCUMENT = "https://host.example/client.json";
const MODULES = path.join(ROOT, "node_modules");

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
await open.storage.organizationSettings.change(
  withDocuments.organization.id,
  { allowedClients: "any" },
  OPERATOR,
);
const withClient = await prepare(standard);
const { organization } = withClient;
publisher.publish(DOCUMENT, {
  body: { client_id: DOCUMENT, redirect_uris, grant_types: ["authorization_code", "refresh_token"] },
});
const token = await standard.token(organization);
await apiAt(standard.url, token).createLink({ slug: "inspected" });
const home = mkdtempSync(path.join(tmpdir(), "linkgate-hosts-"));
test.after.always(async () => {
  stopPrograms();
  publisher.close();
  await Promise.all([open.close(), standard.close()]);
  rmSync(home, { recursive: true, force: true });
});

// No browser opens: the test takes the URL from the output.
const environment = (name: string) => ({
  PATH: process.env.PATH ?? "",
  HOME: path.join(home, name),
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

/** Uses what hosts offer their users beside tools, with a token that may read links. */
async function useResourcesAndPrompts(t: ExecutionContext, client: Client): Promise<void> {
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: String(resources[0]?.uri) });
  t.like(contents[0], { mimeType: "text/markdown" });
  const ref = { type: "ref/prompt", name: "weekly_report" } as const;
  const { messages } = await client.getPrompt({ name: ref.name });
  t.is(messages.length, 1);
  const { completion } = await client.complete({ ref, argument: { name: "tag", value: "" } });
  t.false(completion.hasMore);
}

const INSPECTOR = path.join(MODULES, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");

const IDENTITIES = {
  "its metadata document": {
    at: withDocuments,
    clientId: DOCUMENT,
    remote: ["--client-metadata-url", DOCUMENT],
    inspector: ["--client-metadata-url", DOCUMENT],
  },
  "the organization’s client": {
    at: withClient,
    clientId: organization.clientId,
    remote: [
      "--static-oauth-client-info",
      JSON.stringify({ client_id: organization.clientId, client_secret: organization.clientSecret }),
    ],
    inspector: ["--client-id", organization.clientId, "--client-secret", organization.clientSecret],
  },
};

for (const [identity, { at, clientId, remote, inspector }] of Object.entries(IDENTITIES)) {
  const { service, user } = at;
  test(`mcp-remote connects with ${identity}`, async (t) => {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [
        path.join(MODULES, "mcp-remote/dist/proxy.js"),
        service.urls.mcp,
        String(await freePort()),
        ...remote,
      ],
      env: environment(`remote ${identity}`),
      stderr: "pipe",
    });
    const client = new Client({ name: "desktop app", version: "1" });
    const connected = client.connect(transport);
    let output = "";
    for await (const chunk of transport.stderr as Readable) {
      output += chunk;
      const [url] = AUTHORIZATION.exec(output) ?? [];
      if (!url) continue;
      await allowAccess(at, url);
      break;
    }
    await connected;
    const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
    t.like(structuredContent, { client_id: clientId, user_id: user.id });
    await useResourcesAndPrompts(t, client);
    await client.close();
  });

  test(`the Inspector’s command line connects with ${identity}`, async (t) => {
    const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
    const program = new Program(
      process.execPath,
      [
        INSPECTOR,
        "--cli",
        ...["--server-url", service.urls.mcp, "--transport", "http", "--callback-url", callback],
        ...["--method", "tools/call", "--tool-name", "whoami", "--format", "json"],
        ...inspector,
      ],
      { settings: environment(`inspector ${identity}`) },
    );
    const [url] = await program.says(AUTHORIZATION, "stderr");
    await allowAccess(at, url);
    const { code, stdout, stderr } = await program.ended;
    t.is(code, 0, stderr);
    t.like(JSON.parse(stdout).result.structuredContent, { client_id: clientId, user_id: user.id });
  });
}

type Result = Record<string, { name?: string; text?: string; content?: { text: string } }[]>;

const READS: [args: string[], isExpected: (result: Result) => boolean | undefined][] = [
  [["resources/list"], ({ resources }) => resources?.some(({ name }) => name === "/docs/mcp")],
  [["resources/templates/list"], ({ resourceTemplates: all }) => all?.some(({ name }) => name === "link")],
  [
    ["resources/read", "--uri", "linkgate://links/inspected"],
    ({ contents }) => JSON.parse(contents?.[0]?.text ?? "{}").slug === "inspected",
  ],
  [["prompts/list"], ({ prompts }) => prompts?.some(({ name }) => name === "weekly_report")],
  [
    ["prompts/get", "--prompt-name", "weekly_report", "--prompt-args", "tag=mail"],
    ({ messages }) => messages?.[0]?.content?.text.includes('the tag "mail"'),
  ],
];

for (const era of ["legacy", "modern"]) {
  for (const [args, isExpected] of READS) {
    test(`the Inspector’s command line gets an answer to ${args[0]} in a ${era} revision`, async (t) => {
      const target = ["--server-url", standard.urls.mcp, "--transport", "http", "--protocol-era", era];
      const header = ["--header", `Authorization: Bearer ${token}`, "--format", "json"];
      const program = new Program(
        process.execPath,
        [INSPECTOR, "--cli", ...target, ...header, "--method", ...args],
        { settings: environment("inspector with a token") },
      );
      const { code, stdout, stderr } = await program.ended;
      t.is(code, 0, stderr);
      t.true(isExpected(JSON.parse(stdout).result));
    });
  }
}
