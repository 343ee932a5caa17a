import { once } from "node:events";
import { createServer, type RequestListener, type ServerOptions } from "node:http";
import type { AddressInfo } from "node:net";
import { closeAfterTests } from "../closing.ts";

/** Starts a web server on loopback, until the tests of the file end. */
export async function startApp(listener: RequestListener, options: ServerOptions = {}) {
  const server = createServer(options, listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: closeAfterTests(async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    }),
  };
}
