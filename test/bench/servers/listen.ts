import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

export async function listen(listener: RequestListener): Promise<void> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  console.log(`listening on ${(server.address() as AddressInfo).port}`);
  process.on("SIGTERM", () => process.exit(0));
}
