import { randomBytes } from "node:crypto";
import { openStorage } from "../../adapters/index.ts";
import { startBalancer } from "../harness/balancer.ts";
import { apiAt, type LinkBody } from "../harness/clients/api.ts";
import { addressOf, freePort, type Program, startServer } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { createWebhook, startReceiver } from "../harness/webhooks.ts";
import type { Facts, Subject } from "./load.ts";

const EVENTS_PATH = "/events";
const FOLLOWED = 20;

export type RunningService = Awaited<ReturnType<typeof startLinkgate>>;

/** Starts two processes behind one URL, with an organization, links that are followed, and an endpoint for events. */
export async function startLinkgate(DATABASE_URL: string) {
  const ports = [await freePort(), await freePort()];
  const balancer = await startBalancer({ authorization: ports, resources: ports });
  const key = randomBytes(32);
  const common = {
    DATABASE_URL,
    ENCRYPTION_KEY: key.toString("base64url"),
    BASE_URL: balancer.url,
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    RATE_LIMIT: "off",
    LOG_LEVEL: "fatal",
  };
  let servers: Program[] = [];
  async function start(settings: Record<string, string> = {}): Promise<void> {
    servers = ports.map((port) => startServer({ settings: { ...common, ...settings, PORT: String(port) } }));
    await Promise.all(servers.map(addressOf));
  }
  async function stop(): Promise<void> {
    for (const server of servers) server.kill("SIGKILL");
    await Promise.all(servers.map(({ ended }) => ended));
  }
  await start();
  const storage = openStorage(DATABASE_URL, key);
  const { createOrganization, token: tokenOf } = populate(balancer.url, storage);
  const app = await createOrganization(undefined, "premium");
  await storage.close();
  const token = await tokenOf(app);
  const receiver = await startReceiver();
  const api = apiAt(balancer.url, token);
  await createWebhook(api, receiver.url(EVENTS_PATH));
  const followed: LinkBody[] = [];
  const facts: Facts = { tokens: new Set([token]), revoked: new Set(), links: new Map() };
  for (let count = 0; count < FOLLOWED; count++) {
    const link = await api.createLink({ url: `https://example.com/followed/${count}` });
    facts.links.set(link.url, link);
    followed.push(link);
    // By each of the processes.
    for (const _ of ports) await apiAt(balancer.url).get(`/${link.slug}`);
  }
  const subject: Subject = { url: balancer.url, app, token, receiver, path: EVENTS_PATH };
  return {
    subject,
    followed,
    facts,
    async restart(settings?: Record<string, string>): Promise<void> {
      await stop();
      await start(settings);
    },
    close: stop,
  };
}
