import { once } from "node:events";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import Koa from "koa";
import { openStorage, type Storage } from "../adapters/index.ts";
import type { Addresses } from "../resources/metadata.ts";
import { startDeliveries } from "../resources/webhooks/deliver.ts";
import { createSend, type Surroundings } from "../resources/webhooks/send.ts";
import { addressesOf } from "./addresses.ts";
import { createApp } from "./app.ts";
import type { Settings } from "./config.ts";
import { createCounters } from "./counters.ts";
import { createDemo, type Demo } from "./demo.ts";
import { encryptionKey } from "./encryption.ts";
import { createGracefulServer } from "./graceful-shutdown.ts";
import { takeConnections } from "./handover.ts";
import type { Log } from "./log.ts";
import { type Keys, loadKeys } from "./provider/keys.ts";
import type { Running } from "./stop.ts";
import { startSweeper } from "./sweeper.ts";
import { VERSION } from "./version.ts";

/** A service that listens. `close` finishes what is in flight, then lets everything go. */
export type Service = Running & {
  addresses: Addresses;
  storage: Storage;
  /** What the first start on an empty embedded database made. */
  demo?: Demo;
};

// Requests are cut after 10 s. If the database hangs, so do a sweep and the deliveries: they are left behind then.
const WORK_MS = 10_500;

/** Migrates, makes what is missing, and serves. @throws WrongEncryptionKey, and whatever the database says */
export async function startService(
  settings: Settings,
  log: Log,
  surroundings: Surroundings = {},
): Promise<Service> {
  const storage = openStorage(settings.DATABASE_URL, encryptionKey(settings));
  storage.onCheckpointError((error) => log.error({ err: error }, "a checkpoint failed and will be retried"));
  const counters = await createCounters(settings.REDIS_URL, log);
  try {
    const { keys, demo } = await prepareStorage(settings, storage);

    // The issuer is fixed when the provider is made, and with PORT=0 it holds the port: listen first, answer later.
    const { promise: handler, resolve: answerWith } = Promise.withResolvers<RequestListener>();
    const web = createGracefulServer(
      (req, res) => void handler.then((handle) => handle(req, res)),
      takeConnections,
    );
    const port = await listen(web.server, settings.PORT, settings.HOST);
    const addresses = addressesOf(settings, port);
    const { app, operations } = createApp({ settings, addresses, storage, keys, counters, log });
    answerWith(app.callback());

    const metrics = createGracefulServer(new Koa().use(operations.metrics).callback());
    if (settings.METRICS_PORT !== undefined)
      await listen(metrics.server, settings.METRICS_PORT, settings.HOST);
    const sweeper = startSweeper(storage, log);
    const deliveries = startDeliveries({
      queue: storage.deliveries,
      send: createSend({
        ...surroundings,
        allowed: settings.WEBHOOK_ALLOW_HOSTS,
        userAgent: `linkgate/${VERSION}`,
      }),
      shortUrl: addresses.short,
      onSettled: operations.countAttempt,
      onError: (error) => log.error({ err: error }, "a delivery was put off"),
    });

    const waiting = new Set<string>();
    async function waitFor(what: string, end: Promise<void>) {
      waiting.add(what);
      await end;
      waiting.delete(what);
    }

    return {
      addresses,
      storage,
      ...(demo && { demo }),
      async close() {
        operations.announceStop();
        const work = Promise.all([
          waitFor("requests", web.shutDown()),
          metrics.server.listening ? waitFor("metrics", metrics.shutDown()) : undefined,
          waitFor("sweep", sweeper.stop()),
          waitFor("deliveries", deliveries.stop()),
        ]);
        await Promise.race([work, sleep(WORK_MS, undefined, { ref: false })]);
        counters.close();
        await waitFor("database", storage.close());
      },
      waitingFor: () => [...waiting],
    };
  } catch (error) {
    counters.close();
    await storage.close();
    throw error;
  }
}

/** What one process does before the others: the schema, the keys, something to try. */
export async function prepareStorage(
  settings: Settings,
  storage: Storage,
): Promise<{ keys: Keys; demo?: Demo }> {
  await storage.migrate();
  const keys = await loadKeys(storage.keys);
  const demo = settings.INTROSPECTION_URL ? undefined : await createDemo(settings, storage);
  return { keys, ...(demo && { demo }) };
}

async function listen(server: Server, port: number, host: string): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
