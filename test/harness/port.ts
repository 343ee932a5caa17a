import { once } from "node:events";
import { createServer } from "node:net";

// Below the ports that systems give out by themselves (from 32768 here, from 49152 elsewhere): what is free now is
// not taken by a connection, or by a server on any port, before it is used.
const LOWEST = 10_000;
const HIGHEST = 32_000;

/** A port that is free now, for settings that have to name one. */
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
