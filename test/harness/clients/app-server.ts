import { once } from "node:events";
import { createServer, type RequestListener, type ServerOptions } from "node:http";
import type { AddressInfo } from "node:net";

/** Starts a web server on loopback. The caller closes it. */
export async function startApp(listener: RequestListener, options: ServerOptions = {}) {
  const server = createServer(options, listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async close() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}
