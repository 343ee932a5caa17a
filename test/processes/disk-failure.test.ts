import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import test from "ava";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { createDisk } from "../harness/disk/disk.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import { skip } from "../harness/skip.ts";

const CONCURRENCY = 20;
const disk = engine === "sqlite" ? createDisk() : undefined;

/** Sends a token request except for its end. Returns a function that sends the rest, and resolves to the status. */
function beginTokenRequest(address: string, { clientId, clientSecret }: NewClient): () => Promise<number> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const sent = request(`${address}/oauth/token`, { method: "POST", headers });
  sent.write(`grant_type=client_credentials&client_id=${clientId}&client_secret=`);
  return async () => {
    sent.end(clientSecret);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode as number;
  };
}

if (engine === "sqlite")
  for (const WORKERS of ["1", "2"]) {
    const title = `SQLite: when the disk fails, the server answers, and exits with 1, with WORKERS=${WORKERS}`;
    if (!disk) skip(title, "gcc is not installed, or not on Linux");
    else
      test.serial(title, async (t) => {
        disk.work();
        const changes = { WORKERS, LOG_LEVEL: "error", ...disk.environment };
        const { url, server, stop, ...seed } = await startOnNewDatabase(changes);
        const app = await seed.createOrganization();
        await seed.storage.close();
        // They have begun when the failure is noticed: a server that stops may refuse later ones.
        const requests = Array.from({ length: CONCURRENCY }, () => beginTokenRequest(url, app));
        await atOnce(CONCURRENCY, () => seed.token(app));

        disk.fail();
        const statuses = await Promise.all(requests.map((finish) => finish()));
        t.deepEqual([...new Set(statuses)], [503]);
        const { code, signal, stdout, stderr } = await server.ended;
        t.deepEqual({ code, signal, stderr }, { code: 1, signal: null, stderr: "" });
        const lines = stdout.split("\n").filter((line) => line.includes("the database failed, stopping"));
        t.true(lines.length >= 1 && lines.length <= Number(WORKERS), stdout);
        for (const line of lines) t.regex(line, /the database failed: disk I\/O error/);
        t.notRegex(stdout, /starting another|failed to stop/);
      });
  }
