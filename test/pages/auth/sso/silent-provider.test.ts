import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "ava";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

// The test waits for the timeout of the discovery request.
export const stage = "long";

test("a provider that accepts connections and never responds doesn't delay password sign-ins", async (t) => {
  const silent = createServer(() => {}).listen(0, "localhost");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const service = await startTestService(providerSettings(`http://localhost:${port}`));
  t.teardown(async () => {
    silent.closeAllConnections();
    silent.close();
    await service.close();
  });
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/login`);
  t.is(page.status, 200);
  t.is((await browser.signIn(page, await service.createUser([]))).status, 200);
  t.is((await browser.open(`${service.url}/auth/sso`)).status, 503);
  const { text } = await new TestBrowser(service.url).open(`${service.url}/auth/login`);
  t.regex(text, /Example ID is unavailable right now/);
});
