import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import {
  Client,
  ClientCredentialsProvider,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import test from "ava";
import { parse } from "node-html-parser";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { PYTHON } from "../../../harness/clients/python.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { ROOT } from "../../../harness/program.ts";
import { startTestService } from "../../../harness/service.ts";
import { skip } from "../../../harness/skip.ts";

const run = promisify(execFile);
const service = await startTestService();
const team = await createTeam(service, "free");
const { id: organizationId } = team.organization;
const actor = { id: team.owner.id };
const client = (await service.storage.organizations.setPlan(organizationId, "growth", actor))?.client;
if (!client) throw new Error("the upgrade created no client");
const { clientId, clientSecret } = client;
const { browser } = await browserOf(service, team.owner);
const page = await browser.open(`${service.url}${team.base}/client/quick-start`);
const env = { ...process.env, CLIENT_SECRET: clientSecret };
test.after.always(() => service.close());

/** Returns a snippet as a user copies it. */
function snippet(name: string): string {
  // By default, the parser treats preformatted elements as plain text.
  const html = parse(page.text, { blockTextElements: { script: true } });
  return html.querySelector(`#${name} code`)?.text ?? "";
}

const isLink = /["']?id["']?: ?["']lnk_/;

test("the page contains the client ID and no secret", (t) => {
  t.is(page.status, 200);
  t.false(page.text.includes(clientSecret));
  t.true(page.html.querySelector("#typescript figcaption")?.text.includes("link.mts"));
  for (const name of ["curl", "typescript", "python", "mcp"]) {
    t.true(snippet(name).includes(clientId), name);
    t.is(page.html.querySelector(`#${name} [data-copy]`)?.attributes["data-copy"], snippet(name));
  }
});

test("the curl snippet creates a link", async (t) => {
  const { stdout } = await run("sh", ["-c", snippet("curl")], { env });
  t.regex(stdout, isLink);
});

const WRONG_SECRETS: [what: string, env: Record<string, string>, stderr: RegExp][] = [
  ["an incorrect secret", { CLIENT_SECRET: "incorrect" }, /"error":"invalid_client"/],
  ["no secret", { CLIENT_SECRET: "" }, /CLIENT_SECRET/],
];

for (const [what, wrong, stderr] of WRONG_SECRETS) {
  test(`with ${what} the curl snippet prints the reason and sends no request to the API`, async (t) => {
    const script = run("sh", ["-c", snippet("curl")], { env: { ...env, ...wrong } });
    const failure = (await t.throwsAsync(script)) as Error & { stdout: string; stderr: string };
    t.regex(failure.stderr, stderr);
    t.is(failure.stdout, "");
  });
}

test("the TypeScript snippet creates a link", async (t) => {
  // Inside the project, which has openid-client installed.
  const file = path.join(ROOT, "test/server/dashboard/api-access/.quick-start.mts");
  await writeFile(file, snippet("typescript"));
  try {
    const { stdout } = await run(process.execPath, [file], { env });
    t.regex(stdout, isLink);
  } finally {
    await rm(file);
  }
});

const pythonTitle = "the Python snippet creates a link";
// Authlib is not an npm package; CI installs it.
if (!PYTHON) skip(pythonTitle, "no Python here has Authlib");
else
  test(pythonTitle, async (t) => {
    const { stdout } = await run(PYTHON as string, ["-c", snippet("python")], { env });
    t.regex(stdout, isLink);
  });

/** What an MCP host stores between the steps of an authorization. */
type HostState = { tokens?: OAuthTokens; verifier?: string; asked?: URL; discovery?: OAuthDiscoveryState };

/** Parses the MCP server entry of the page. */
function mcpServer(): { url: string; oauth: { clientId: string; callbackPort: number } } {
  return JSON.parse(snippet("mcp")).mcpServers.linkgate;
}

/** Creates a link as an MCP host with the given authorization. */
async function createLinkOverMcp(authProvider: OAuthClientProvider): Promise<string> {
  const host = new Client({ name: "host", version: "1.0.0" });
  await host.connect(new StreamableHTTPClientTransport(new URL(mcpServer().url), { authProvider }));
  const created = await host.callTool({ name: "create_link", arguments: { url: "https://example.com/" } });
  await host.close();
  return JSON.stringify(created.structuredContent);
}

test("a host with the MCP entry and the secret signs a user in and creates a link", async (t) => {
  const { url, oauth } = mcpServer();
  const redirectUrl = `http://localhost:${oauth.callbackPort}/callback`;
  t.true(
    page.html.querySelector("#mcp figcaption")?.text.includes(redirectUrl),
    "the page shows the redirect URI",
  );
  await service.storage.clients.setRedirectUris(organizationId, [redirectUrl], actor);
  const kept: HostState = {};
  const keep =
    <Name extends keyof HostState>(name: Name) =>
    (value: NonNullable<HostState[Name]>) => {
      kept[name] = value;
    };
  const authProvider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: { redirect_uris: [redirectUrl] },
    clientInformation: () => ({ client_id: oauth.clientId, client_secret: clientSecret }),
    tokens: () => kept.tokens,
    saveTokens: keep("tokens"),
    redirectToAuthorization: keep("asked"),
    codeVerifier: () => kept.verifier as string,
    saveCodeVerifier: keep("verifier"),
    discoveryState: () => kept.discovery,
    saveDiscoveryState: keep("discovery"),
  };
  await t.throwsAsync(createLinkOverMcp(authProvider), { instanceOf: UnauthorizedError });
  const browser = new TestBrowser(service.url);
  const consent = await browser.signIn(await browser.open(String(kept.asked)), team.member);
  const callback = new URL((await browser.press(consent, "Allow")).url);
  t.true(callback.href.startsWith(`${redirectUrl}?`));
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  await transport.finishAuth(callback.searchParams);
  t.regex(await createLinkOverMcp(authProvider), isLink);
});

test("an agent with the same entry can use client credentials", async (t) => {
  const { oauth } = mcpServer();
  const authProvider = new ClientCredentialsProvider({
    clientId: oauth.clientId,
    clientSecret,
    expectedIssuer: service.url,
  });
  t.regex(await createLinkOverMcp(authProvider), isLink);
});
