import { startBrowser } from "../../certification/src/browser.ts";
import type { Result } from "../../certification/src/check.ts";
import { runChecks } from "../../certification/src/run.ts";
import { CLIENT, type Flaw, OTHER, REDIRECT_URI, SCOPE, startExampleServer } from "./example-server.ts";
import { useBrowser } from "./user.ts";

const USER = { fields: { login: "user", password: "password" }, buttons: ["Sign-in", "Continue"] };

/** Runs checks against the example server with at most one flaw. */
export async function checkExample(flaw?: Flaw, prefixes?: string[]): Promise<Result[]> {
  const server = await startExampleServer(flaw);
  const metadataUrl = `${server.issuer}/.well-known/openid-configuration`;
  const metadata = await (await fetch(metadataUrl)).json();
  const browser = await startBrowser(REDIRECT_URI);
  const user = useBrowser(browser.address, server.issuer, USER);
  const target = {
    issuer: server.issuer,
    metadata,
    metadataUrl,
    client: CLIENT,
    other: OTHER,
    scope: SCOPE,
    resource: server.resource,
    audience: server.resource,
    redirectUri: browser.redirectUri,
    browser,
  };
  try {
    return await runChecks(target, prefixes);
  } finally {
    browser.close();
    await user;
    await server.close();
  }
}
