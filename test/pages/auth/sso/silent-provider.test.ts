import test from "ava";
import { startApp } from "../../../harness/clients/app-server.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

// The test waits for the timeout of the discovery request.
export const stage = "long";

test("a provider that accepts connections and never responds doesn't delay password sign-ins", async (t) => {
  const silent = await startApp(() => {});
  const service = await startTestService(providerSettings(silent.url));
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/login`);
  t.is(page.status, 200);
  t.is((await browser.signIn(page, await service.createUser([]))).status, 200);
  t.is((await browser.open(`${service.url}/auth/sso`)).status, 503);
  const { text } = await new TestBrowser(service.url).open(`${service.url}/auth/login`);
  t.regex(text, /Example ID is unavailable right now/);
});
