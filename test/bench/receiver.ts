import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Storage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import { markVerified } from "../harness/webhooks.ts";
import { type Workspace, withDatabase } from "./workspace.ts";

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Starts a receiver on loopback addresses. It answers the first attempt of every n-th delivery with 503. */
export async function startReceiver(
  workspace: Workspace,
  hosts: string[],
  failEvery = Number.POSITIVE_INFINITY,
) {
  const events = new Set<string>();
  let requests = 0;
  let port = 0;
  for (const host of hosts) {
    const server = createServer((request, response) => {
      requests++;
      const id = `${request.url} ${request.headers["webhook-id"]}`;
      const fails = !events.has(id) && events.add(id).size % failEvery === 0;
      request.resume().on("end", () => response.writeHead(fails ? 503 : 204).end());
    });
    // An idle connection isn't closed while the service reuses it.
    server.keepAliveTimeout = 60_000;
    await once(server.listen(port, host), "listening");
    port = (server.address() as AddressInfo).port;
    workspace.defer(() => server.close());
  }
  return {
    origins: hosts.map((host) => `http://${host}:${port}`),
    /** Counts the requests, and the different events, that it has received. */
    received: () => ({ requests, events: events.size }),
  };
}

export async function createWebhook(storage: Storage, organizationId: string, url: string): Promise<void> {
  const fields = { url, events: ["link.created" as const], enabled: true };
  await storage.webhooks.create(organizationId, OPERATOR, fields, newWebhookSecret());
}

/** Marks all webhooks as verified, because no process delivers test events. */
export function verifyWebhooks(url: string): Promise<void> {
  return withDatabase(url, async (knex) => markVerified({ knex }, await knex("webhooks").pluck("id")));
}
