import { once } from "node:events";
import { createServer } from "node:net";

// Below the ephemeral ports (from 32768 on Linux, from 49152 elsewhere): no connection, and no server on port 0, can take
// a free port before the test uses it.
const LOWEST = 10_000;
const HIGHEST = 32_000;

/** Returns a free port, for settings that need a number. */
export async function freePort(): Promise<number> {
  const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return freePort();
  }
  server.close();
  await once(server, "close");
  return port;
}
