import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { childrenOf } from "../harness/child-processes.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";

const database = await createTestDatabase();
test.after.always(async () => {
  stopPrograms();
  await database.drop();
});

function start(settings: Record<string, string> = {}) {
  return startServer({
    settings: {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64url"),
      WORKERS: "2",
      PORT: "0",
      ...settings,
    },
  });
}

test.serial("a worker that dies during a restart is replaced once", async (t) => {
  const server = start();
  await addressOf(server);
  const [, second] = (await childrenOf(server.pid)).sort((a, b) => a - b);
  server.kill("SIGHUP");
  // The second worker dies while the first one is being replaced.
  while ((await childrenOf(server.pid)).length < 3) await sleep(5);
  process.kill(second as number, "SIGKILL");
  await server.says(/restarted all workers/);
  while ((await childrenOf(server.pid)).length < 2) await sleep(50);
  t.is((await childrenOf(server.pid)).length, 2);
  await server.stop();
});

test.serial("a server that is stopped during a restart exits with 0", async (t) => {
  const server = start({ LOG_LEVEL: "error" });
  await addressOf(server);
  server.kill("SIGHUP");
  // A new worker has just been started, and doesn't handle signals yet.
  while ((await childrenOf(server.pid)).length < 3) await sleep(5);
  const { code, stdout, stderr } = await server.stop();
  t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  t.notRegex(stdout, /"level"/);
});

test.serial("a stop does not cut off a worker that a restart is already stopping", async (t) => {
  const server = start({ LOG_LEVEL: "error", SHUTDOWN_DELAY: "3" });
  const url = await addressOf(server);
  server.kill("SIGHUP");
  while ((await fetch(`${url}/readyz`, { headers: { connection: "close" } })).status !== 503) await sleep(5);
  // Two signals within half a second count as one.
  await sleep(700);
  const { code, stdout, stderr } = await server.stop();
  t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  t.notRegex(stdout, /"level"/);
});
