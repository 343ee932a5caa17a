import { randomBytes } from "node:crypto";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { atOnce } from "../harness/database/storage.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { createWebhook, until } from "../harness/webhooks.ts";

export const databases = "all";

const database = await createTestDatabase();
const key = randomBytes(32);
const storage = openStorage(database.url, key);
test.after.always(async () => {
  stopPrograms();
  await storage.close();
  await database.drop();
});

const TODAY = Math.floor(Date.now() / 86_400_000);

/** Starts a server with a link, and a webhook that subscribes to its clicks. */
async function start() {
  const server = startServer({
    settings: {
      PORT: "0",
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: key.toString("base64url"),
      RATE_LIMIT: "off",
      LOG_LEVEL: "silent",
      NODE_ENV: "test",
      // Nothing listens there, so deliveries stay in the queue.
      WEBHOOK_ALLOW_HOSTS: "127.0.0.1:9",
    },
  });
  const url = await addressOf(server);
  const { createOrganization, token } = populate(url, storage);
  const { id: organizationId, ...client } = await createOrganization();
  const api = apiAt(url, await token({ ...client }));
  const webhook = await createWebhook(api, "http://127.0.0.1:9/", ["link.clicked"]);
  const { id, slug } = await api.createLink();
  const follow = (times: number) => atOnce(times, () => apiAt(url).get(`/${slug}`));
  return { server, organizationId, webhook, id, follow };
}

const clicksOf = async ({ organizationId, id }: { organizationId: string; id: string }) =>
  (await storage.links.find(organizationId, id))?.clicks;
const storedTotals = async ({ organizationId, id, webhook }: Awaited<ReturnType<typeof start>>) => {
  const { days } = await storage.links.analytics(organizationId, id, TODAY - 1, TODAY + 1);
  const deliveries = await storage.webhooks.deliveries(organizationId, webhook.id, 1000);
  return {
    clicks: await clicksOf({ organizationId, id }),
    analytics: days.reduce((sum, { clicks }) => sum + clicks, 0),
    delivered: deliveries
      .filter(({ event }) => event.type === "link.clicked")
      .reduce((sum, { event }) => sum + (event.data.clicks as number), 0),
  };
};

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} right after redirects loses no click, analytics or event`, async (t) => {
    const running = await start();
    const replies = await running.follow(200);
    running.server.kill(signal);
    t.is((await running.server.ended).code, 0);
    t.deepEqual(new Set(replies.map(({ status }) => status)), new Set([302]));
    t.deepEqual(await storedTotals(running), { clicks: 200, analytics: 200, delivered: 200 });
  });
}

test("SIGKILL loses no stored click, and counts none twice", async (t) => {
  const running = await start();
  await running.follow(100);
  await until(async () => ((await clicksOf(running)) === 100 ? true : undefined));
  await running.follow(50);
  running.server.kill("SIGKILL");
  await running.server.ended;
  const { clicks, analytics, delivered } = await storedTotals(running);
  t.true(clicks !== undefined && clicks >= 100 && clicks <= 150, `${clicks}`);
  // The event of further clicks within a second waits in memory.
  t.true(delivered > 0 && delivered <= (clicks as number), `${delivered}`);
  t.true(analytics <= 150);
});
