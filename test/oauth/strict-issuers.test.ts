import { discoverOAuthServerInfo } from "@modelcontextprotocol/client";
import test from "ava";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import { startTestService } from "../harness/service.ts";

// Clients that compare the issuer to the letter with the URL that they started from (RFC 8414 §3.3).
const service = await startTestService();
const { base, mcp, mcpRead } = service.urls;
const insecure = { [oauth.allowInsecureRequests]: true };
const inUpperCase = (url: string) => url.replace("http://localhost", "HTTP://LOCALHOST");

type Algorithm = "oauth2" | "oidc";
type Outcome = "found" | "404" | "another issuer";

/** Whether a strict client finds the metadata of RFC 8414 and of OpenID Connect from each URL. No other URL than the issuer has one. */
const STARTS: [url: string, oauth2: Outcome, oidc: Outcome][] = [
  [base, "found", "found"],
  [`${base}/`, "found", "found"],
  [inUpperCase(base), "found", "found"],
  [mcp, "404", "404"],
  [`${mcp}/`, "404", "404"],
  [inUpperCase(mcp), "404", "404"],
  [mcpRead, "404", "404"],
  [`${mcpRead}/`, "404", "404"],
  [`${mcp}/.well-known/openid-configuration`, "404", "404"],
  [`${base}/.well-known/openid-configuration/mcp`, "404", "404"],
];

async function discover(start: string, algorithm: Algorithm): Promise<Outcome> {
  const url = new URL(start);
  const response = await oauth.discoveryRequest(url, { algorithm, ...insecure });
  if (response.status === 404) return "404";
  const found = await oauth.processDiscoveryResponse(url, response).catch(() => undefined);
  return found ? "found" : "another issuer";
}

/** openid-client takes a URL with a well-known path for that of the metadata, so these are left out. */
async function discoverByOpenidClient(start: string, algorithm: Algorithm): Promise<Outcome> {
  const execute = [openid.allowInsecureRequests];
  try {
    await openid.discovery(new URL(start), "client", undefined, undefined, { algorithm, execute });
    return "found";
  } catch (error) {
    const { message } = error as Error;
    if (message.includes("issuer")) return "another issuer";
    if ((error as { cause?: { status?: number } }).cause?.status === 404) return "404";
    throw error;
  }
}

for (const [start, oauth2, oidc] of STARTS) {
  const from = start.replace(/:\d+/, "");
  test(`from ${from}, a strict client finds its issuer or is refused with the first response`, async (t) => {
    for (const [algorithm, outcome] of Object.entries({ oauth2, oidc }) as [Algorithm, Outcome][]) {
      t.is(await discover(start, algorithm), outcome, algorithm);
      if (start.includes("/.well-known/")) continue;
      t.is(await discoverByOpenidClient(start, algorithm), outcome, `openid-client, ${algorithm}`);
    }
  });

  test(`from ${from}, the MCP SDK finds the issuer`, async (t) => {
    const { authorizationServerUrl, authorizationServerMetadata } = await discoverOAuthServerInfo(start);
    t.is(authorizationServerUrl, base);
    t.is(authorizationServerMetadata?.issuer, base);
  });
}

for (const resource of [base, mcp, `${mcp}/`, inUpperCase(mcp), mcpRead, `${mcpRead}/`])
  test(`the metadata of ${resource.replace(/:\d+/, "")} leads a strict client to the issuer`, async (t) => {
    const url = new URL(resource);
    const response = await oauth.resourceDiscoveryRequest(url, insecure);
    const { authorization_servers } = await oauth.processResourceDiscoveryResponse(url, response);
    t.deepEqual(authorization_servers, [base]);
    t.is(await discover(base, "oauth2"), "found");
  });
