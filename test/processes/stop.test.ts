import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { createTestDatabase } from "../harness/database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { populate } from "../harness/service.ts";

const database = await createTestDatabase();
const key = randomBytes(32);
const storage = openStorage(database.url, key);
test.after.always(async () => {
  stopPrograms();
  await storage.close();
  await database.drop();
});

const ROUNDS = 3;
const CLIENTS = 60;
// The signal comes when so many requests are answered.
const WARM = 300;

/** A request as its client sees it: `isSent` when the system has all of it, `status` when the response is complete. */
type Exchange = { isSent: boolean; isReused: boolean; status?: number; error?: string };

/** Asks for a token; on a connection of its own without an agent. */
async function askToken(url: string, body: string, agent: Agent | false, started: (one: Exchange) => void) {
  const { port, host } = new URL(url);
  const headers = {
    host,
    "content-type": "application/x-www-form-urlencoded",
    "content-length": body.length,
  };
  const sent = request({ host: "127.0.0.1", port, path: "/oauth/token", method: "POST", agent, headers });
  const exchange: Exchange = { isSent: false, isReused: false };
  started(exchange);
  sent.once("finish", () => {
    exchange.isSent = true;
    exchange.isReused = sent.reusedSocket;
  });
  sent.end(body);
  try {
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await response.toArray();
    exchange.status = response.statusCode as number;
  } catch (error) {
    exchange.error = String((error as NodeJS.ErrnoException).code);
  }
  return exchange;
}

for (const workers of [1, 2]) {
  test.serial(
    `with WORKERS=${workers}, a stop answers every request that was sent before the signal`,
    async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const server = startServer({
          settings: {
            DATABASE_URL: database.url,
            ENCRYPTION_KEY: key.toString("base64url"),
            WORKERS: String(workers),
            PORT: "0",
            RATE_LIMIT: "off",
            LOG_LEVEL: "error",
          },
        });
        const url = await addressOf(server);
        const { clientId, clientSecret } = await populate(url, storage).createOrganization();
        const credentials = {
          grant_type: "client_credentials",
          client_id: clientId,
          client_secret: clientSecret,
        };
        const body = new URLSearchParams(credentials).toString();

        const agent = new Agent({ keepAlive: true });
        const open = new Set<Exchange>();
        let before: Exchange[] | undefined;
        let answered = 0;
        // Half of the clients keep their connection, the others make a new one for each request.
        const clients = Array.from({ length: CLIENTS }, async (_, index) => {
          while (!before) {
            const exchange = await askToken(url, body, index % 2 ? agent : false, (one) => open.add(one));
            open.delete(exchange);
            if (++answered === WARM) {
              before = [...open].filter(({ isSent }) => isSent);
              server.kill();
            }
          }
        });
        await Promise.all(clients);
        agent.destroy();
        const { code, stderr } = await server.ended;
        const sent = before ?? [];
        const lost = sent.filter(({ status }) => status !== 200);
        t.deepEqual(lost, [], `round ${round}: ${lost.length} of ${sent.length} lost`);
        t.true(sent.some(({ isReused }) => isReused) && sent.some(({ isReused }) => !isReused));
        t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
      }
    },
  );
}
