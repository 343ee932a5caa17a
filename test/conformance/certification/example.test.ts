import test from "ava";
import { startBrowser } from "../../../certification/src/browser.ts";
import type { Result } from "../../../certification/src/check.ts";
import { runChecks } from "../../../certification/src/run.ts";
import { CLIENT, type Flaw, OTHER, REDIRECT_URI, SCOPE, startExampleServer } from "./example-server.ts";
import { FLAWS } from "./flaws.ts";
import { useBrowser } from "./user.ts";

export const stage = "long";

const USER = { fields: { login: "user", password: "password" }, buttons: ["Sign-in", "Continue"] };

async function checkExample(flaw: Partial<Flaw> = {}, prefixes?: string[]): Promise<Result[]> {
  const { issuer, resource, close } = await startExampleServer(flaw);
  const metadataUrl = `${issuer}/.well-known/openid-configuration`;
  const metadata = await (await fetch(metadataUrl)).json();
  const browser = await startBrowser(REDIRECT_URI);
  const user = useBrowser(browser.address, issuer, USER);
  const { redirectUri } = browser;
  const server = { issuer, metadata, metadataUrl, resource, audience: resource };
  const target = { ...server, client: CLIENT, other: OTHER, scope: SCOPE, redirectUri, browser };
  try {
    return await runChecks(target, prefixes);
  } finally {
    browser.close();
    await user;
    await close();
  }
}

/** What is true of oidc-provider and the resource of the example. */
const FOUND: Record<string, string> = {
  // An unknown scope is left out of the token, and the response doesn't say so.
  "token-unknown-scope": "failed",
  // The resource uses the token in the header, and ignores the one in the URL.
  "resource-two-methods": "warning",
  "resource-metadata-challenge": "warning",
};

const isFound = ({ verdict }: { verdict: string }) => verdict === "failed" || verdict === "warning";

test("of the example server, nothing is reported but what is true", async (t) => {
  const results = await checkExample();
  const found = results.filter(isFound);
  const verdicts = Object.fromEntries(found.map(({ id, verdict }) => [id, verdict]));
  t.deepEqual(verdicts, FOUND, JSON.stringify(found));
  t.true(results.length >= 150);
  t.is(new Set(results.map(({ id }) => id)).size, results.length);
  for (const { clause, title } of results) t.truthy(clause && title);
});

test("a grant that the server doesn't offer is not reported", async (t) => {
  const results = await checkExample({
    configure: ({ clients = [], features }) => {
      if (features?.clientCredentials) features.clientCredentials.enabled = false;
      for (const client of clients) client.grant_types = ["authorization_code", "refresh_token"];
    },
  });
  const found = results.filter(isFound);
  const ids = found.map(({ id }) => id);
  t.deepEqual(ids, ["resource-metadata-challenge"], JSON.stringify(found));
  t.true(results.some(({ detail }) => detail === "no client_credentials grant"));
});

for (const flaw of FLAWS)
  test(`a flaw is found: ${flaw.what}`, async (t) => {
    const results = await checkExample(flaw, [flaw.found]);
    const result = results.find(({ id }) => id === flaw.found);
    t.true(result && isFound(result), JSON.stringify(result));
    t.truthy(result?.detail);
    t.true(result?.exchanges.length !== 0 || /^metadata|latency$/.test(flaw.found));
  });
