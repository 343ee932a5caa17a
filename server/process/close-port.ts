import { Server } from "node:net";
import { setImmediate as afterPoll, setTimeout as sleep } from "node:timers/promises";

// Clients that keep requesting reconnect within a few milliseconds of a response.
const QUIET_MS = 10;
const LIMIT_MS = 500;
// Sleeps between checks: a busy loop uses up its time slice, so the process may be preempted just before it closes the port.
const STEP_MS = 1;
const LATE_MS = 3;

/**
 * Closes a port and leaves its connections open. When a port closes, the kernel resets the connections that are waiting to
 * be accepted. This first waits, for at most 500 ms, until none has arrived for 10 ms while the process was responsive.
 */
export async function closePort(server: Server): Promise<void> {
  let quietSince = performance.now();
  const end = quietSince + LIMIT_MS;
  server.on("connection", () => {
    quietSince = performance.now();
  });
  for (let now = quietSince; now < end && now - quietSince < QUIET_MS; ) {
    const before = now;
    await sleep(STEP_MS);
    await afterPoll();
    now = performance.now();
    if (now - before > LATE_MS) quietSince = now;
  }
  // `http.Server.close` would destroy connections whose last response is still being sent.
  Server.prototype.close.call(server);
}
