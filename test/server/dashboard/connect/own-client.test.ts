import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import test from "ava";
import { exportJWK, generateKeyPair } from "jose";
import { OPERATOR } from "../../../../resources/events/types.ts";
import type { ConnectBody } from "../../../harness/clients/connect.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService({ CIMD: "off" });
const team = await createTeam(service, "free");
const { organization } = team;
const changed = await service.storage.organizations.setPlan(organization.id, "growth", OPERATOR);
if (!changed?.client) throw new Error("the upgrade created no client");
const { clientId, clientSecret } = changed.client;
const { body } = await team.owner.api.send<ConnectBody>("GET", `${team.base}/connect`);
const HOSTS = ["claude-code", "cursor", "vscode", "gemini"];
test.after.always(() => service.close());

function ownClientOf(id: string) {
  const { own_client } = body.hosts.find((host) => host.id === id) ?? {};
  if (!own_client) throw new Error(`${id} can't use the organization's client`);
  return own_client;
}

test("hosts that take a client ID and secret can use the organization’s client instead", (t) => {
  const ids = body.hosts.filter(({ own_client }) => own_client).map(({ id }) => id);
  t.deepEqual(ids, HOSTS);
  for (const id of ids) {
    const { steps } = ownClientOf(id);
    t.true(JSON.stringify(steps).includes(clientId), id);
    t.false(JSON.stringify(steps).includes(clientSecret), id);
  }
});

test("a configuration file names the client and takes the secret from the environment", (t) => {
  const fileOf = (id: string) =>
    JSON.parse(ownClientOf(id).steps.find(({ code }) => code?.startsWith("{"))?.code ?? "").mcpServers
      .linkgate;
  t.like(fileOf("cursor"), {
    url: service.urls.mcp,
    auth: { CLIENT_ID: clientId, CLIENT_SECRET: `\${env:LINKGATE_CLIENT_SECRET}` },
  });
  t.like(fileOf("gemini"), {
    httpUrl: service.urls.mcp,
    oauth: { clientId, clientSecret: "$LINKGATE_CLIENT_SECRET" },
  });
});

test("members see no client ID", async (t) => {
  const asMember = await team.member.api.send<ConnectBody>("GET", `${team.base}/connect`);
  t.true(asMember.body.hosts.every(({ own_client }) => own_client === null));
  t.false(asMember.text.includes(clientId));
  const { browser } = await browserOf(service, team.member);
  const page = await browser.open(`${service.url}${team.base}/connect?host=cursor`);
  t.false(page.text.includes(clientId));
  t.false(page.text.includes("redirect URI"));
});

test("a client without a secret is not offered", async (t) => {
  const { organization, base, owner } = await createTeam(service);
  const { publicKey } = await generateKeyPair("ES256", { extractable: true });
  const json = { key: await exportJWK(publicKey) };
  t.is((await owner.api.send("POST", `${base}/client/keys`, { json })).status, 201);
  t.true(await service.storage.clients.removeSecrets(organization.id, OPERATOR));
  const { hosts } = (await owner.api.send<ConnectBody>("GET", `${base}/connect`)).body;
  t.true(hosts.every(({ own_client }) => own_client === null));
});

/** What an MCP host stores between the steps of an authorization. */
type HostState = { tokens?: OAuthTokens; verifier?: string; asked?: URL; discovery?: OAuthDiscoveryState };

/** Returns what the MCP SDK asks a host for: its client, and a place for what it learns. */
function createHost(redirectUrl: string): { kept: HostState; authProvider: OAuthClientProvider } {
  const kept: HostState = {};
  const keep =
    <Name extends keyof HostState>(name: Name) =>
    (value: NonNullable<HostState[Name]>) => {
      kept[name] = value;
    };
  const authProvider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: { redirect_uris: [redirectUrl] },
    clientInformation: () => ({ client_id: clientId, client_secret: clientSecret }),
    tokens: () => kept.tokens,
    saveTokens: keep("tokens"),
    redirectToAuthorization: keep("asked"),
    codeVerifier: () => kept.verifier as string,
    saveCodeVerifier: keep("verifier"),
    discoveryState: () => kept.discovery,
    saveDiscoveryState: keep("discovery"),
  };
  return { kept, authProvider };
}

/** Creates a link as an MCP host with the given authorization. */
async function createLinkOverMcp(authProvider: OAuthClientProvider): Promise<string> {
  const host = new Client({ name: "host", version: "1.0.0" });
  await host.connect(new StreamableHTTPClientTransport(new URL(service.urls.mcp), { authProvider }));
  const created = await host.callTool({ name: "create_link", arguments: { url: "https://example.com/" } });
  await host.close();
  return JSON.stringify(created.structuredContent);
}

for (const id of HOSTS) {
  test.serial(
    `with the redirect URI of ${id}, the client ID and the secret, a member connects`,
    async (t) => {
      const { redirect_uri } = ownClientOf(id);
      await service.storage.clients.setRedirectUris(organization.id, [redirect_uri], OPERATOR);
      const { kept, authProvider } = createHost(redirect_uri);
      await t.throwsAsync(createLinkOverMcp(authProvider), { instanceOf: UnauthorizedError });
      const browser = new TestBrowser(service.url);
      const consent = await browser.signIn(await browser.open(String(kept.asked)), team.member);
      const callback = new URL((await browser.press(consent, "Allow")).url);
      t.true(callback.href.startsWith(`${redirect_uri}?`));
      const transport = new StreamableHTTPClientTransport(new URL(service.urls.mcp), { authProvider });
      await transport.finishAuth(callback.searchParams);
      t.regex(await createLinkOverMcp(authProvider), /"id":"lnk_/);
    },
  );
}
