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
import { browserOf, createTeam } from "../../harness/dashboard.ts";
import { Person } from "../../harness/person.ts";
import { ROOT } from "../../harness/program.ts";
import { PYTHON } from "../../harness/python.ts";
import { startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";

const run = promisify(execFile);
const service = await startTestService();
const team = await createTeam(service, "free");
const { id: organizationId } = team.organization;
const by = { actor: team.owner.id };
const client = (await service.storage.organizations.setPlan(organizationId, "growth", by))?.client;
if (!client) throw new Error("the upgrade made no client");
const { clientId, clientSecret } = client;
const { person } = await browserOf(service, team.owner);
const page = await person.open(`${service.url}${team.base}/client/quick-start`);
const env = { ...process.env, CLIENT_SECRET: clientSecret };
test.after.always(() => service.close());

/** What stands on the page, as somebody copies it. */
function snippet(name: string): string {
  // The parser takes what is preformatted as plain text unless told otherwise.
  const html = parse(page.text, { blockTextElements: { script: true } });
  return html.querySelector(`#${name} code`)?.text ?? "";
}

const isLink = /["']?id["']?: ?["']lnk_/;

test("the page names the client and no secret", (t) => {
  t.is(page.status, 200);
  t.false(page.text.includes(clientSecret));
  for (const name of ["curl", "typescript", "python", "mcp"]) {
    t.true(snippet(name).includes(clientId), name);
    t.is(page.html.querySelector(`#${name} [data-copy]`)?.attributes["data-copy"], snippet(name));
  }
});

test("the curl snippet makes a link", async (t) => {
  const { stdout } = await run("sh", ["-c", snippet("curl")], { env });
  t.regex(stdout, isLink);
});

test("the TypeScript snippet makes a link", async (t) => {
  // Beside our own packages, among which openid-client is.
  const file = path.join(ROOT, "test/server/dashboard/.quick-start.ts");
  await writeFile(file, snippet("typescript"));
  try {
    const { stdout } = await run(process.execPath, [file], { env });
    t.regex(stdout, isLink);
  } finally {
    await rm(file);
  }
});

const pythonTitle = "the Python snippet makes a link";
// It is no npm package; CI installs it.
if (!PYTHON) skip(pythonTitle, "no Python here has Authlib");
else
  test(pythonTitle, async (t) => {
    const { stdout } = await run(PYTHON as string, ["-c", snippet("python")], { env });
    t.regex(stdout, isLink);
  });

/** What a host remembers between its steps. */
type Kept = { tokens?: OAuthTokens; verifier?: string; asked?: URL; discovery?: OAuthDiscoveryState };

/** The entry of the page, as a host reads it. */
function mcpServer(): { url: string; oauth: { clientId: string; callbackPort: number } } {
  return JSON.parse(snippet("mcp")).mcpServers.linkgate;
}

/** Makes a link as a host that was authorized in one way or the other. */
async function createLinkOverMcp(authProvider: OAuthClientProvider): Promise<string> {
  const host = new Client({ name: "host", version: "1.0.0" });
  await host.connect(new StreamableHTTPClientTransport(new URL(mcpServer().url), { authProvider }));
  const made = await host.callTool({ name: "create_link", arguments: { url: "https://example.com/" } });
  await host.close();
  return JSON.stringify(made.structuredContent);
}

test("a host with the MCP entry and the secret lets a person sign in, and makes a link", async (t) => {
  const { url, oauth } = mcpServer();
  const redirectUrl = `http://localhost:${oauth.callbackPort}/callback`;
  t.true(page.html.querySelector("#mcp figcaption")?.text.includes(redirectUrl), "the page names it");
  await service.storage.clients.setRedirectUris(organizationId, [redirectUrl], by);
  const kept: Kept = {};
  const keep =
    <Name extends keyof Kept>(name: Name) =>
    (value: NonNullable<Kept[Name]>) => {
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
  const browser = new Person(service.url);
  const consent = await browser.signIn(await browser.open(String(kept.asked)), team.member);
  const callback = new URL((await browser.press(consent, "Allow")).url);
  t.true(callback.href.startsWith(`${redirectUrl}?`));
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  await transport.finishAuth(callback.searchParams);
  t.regex(await createLinkOverMcp(authProvider), isLink);
});

test("an agent with the same entry needs no person", async (t) => {
  const { oauth } = mcpServer();
  const authProvider = new ClientCredentialsProvider({
    clientId: oauth.clientId,
    clientSecret,
    expectedIssuer: service.url,
  });
  t.regex(await createLinkOverMcp(authProvider), isLink);
});
