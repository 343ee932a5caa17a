import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type ExecutionContext } from "ava";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

/** Starts a service whose identity provider answers like this. Returns a function that opens its pages. */
async function serveWith(t: ExecutionContext, answer: RequestListener) {
  const provider = createServer(answer).listen(0, "localhost");
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  const service = await startTestService(providerSettings(`http://localhost:${port}`));
  t.teardown(async () => {
    provider.closeAllConnections();
    provider.close();
    await service.close();
  });
  const browser = new TestBrowser(service.url);
  return (path: string) => browser.open(service.url + path);
}

test("sign-in pages wait once for a provider that hangs", async (t) => {
  const attempts = { begun: 0, ended: 0 };
  const open = await serveWith(t, (_request, response) => {
    attempts.begun++;
    response.once("close", () => attempts.ended++);
  });
  // If each page waited for a second, the first attempt would have been given up.
  for (let pages = 0; pages < 10; pages++) t.is((await open("/auth/login")).status, 200);
  t.deepEqual(attempts, { begun: 1, ended: 0 });
});

test("a response without an end is given up before it fills the memory", async (t) => {
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024, " ");
  const open = await serveWith(t, (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const send = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      sent += chunk.length;
    };
    response.on("drain", send);
    send();
  });
  const page = await open("/auth/sso");
  t.is(page.status, 503);
  t.regex(page.text, /Example ID is unavailable right now/);
  // Besides what was read, the kernel takes a few megabytes.
  t.true(sent < 32 * 1024 * 1024, `${sent} bytes`);
});
