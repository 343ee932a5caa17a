import cluster from "node:cluster";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import Koa from "koa";
import { observeWithAll, type StatementObserver } from "../../adapters/database/statement-observer.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { createGuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import type { AllowedHosts } from "../../resources/outbound/ssrf-guard.ts";
import { limitsOf } from "../../resources/plans.ts";
import { startDeliveries } from "../../resources/webhooks/dispatcher.ts";
import { createSend, type SendDefaults } from "../../resources/webhooks/send.ts";
import { createApp } from "../app.ts";
import { clientPolicyOf } from "../clients/client-policy.ts";
import { createDemo, type Demo } from "../demo.ts";
import { createMissingKey, encryptionKeys } from "../keys/encryption-keys.ts";
import { startKeyRefresh } from "../keys/refresh.ts";
import { type Keys, loadKeys } from "../keys/shared-keys.ts";
import type { Log } from "../log.ts";
import { startMails } from "../mail/dispatcher.ts";
import { createMailer } from "../mail/mailer.ts";
import { createMetrics } from "../observability/metrics.ts";
import type { PassedOn, Telemetry } from "../observability/tracing.ts";
import { limitConnections } from "../rate-limits/connections.ts";
import { createRateLimitStore } from "../rate-limits/store.ts";
import type { Settings } from "../settings/config.ts";
import { fetchableHosts, identityProviderHosts } from "../settings/outbound-hosts.ts";
import { publicUrlsOf } from "../settings/public-urls.ts";
import { toListenError, toStartupError } from "../startup-errors.ts";
import { VERSION } from "../version.ts";
import { createGracefulServer } from "./graceful-server.ts";
import { scheduleAuditChain, schedulePurge } from "./schedules.ts";
import { joinSharedPort, leaveSharedPort } from "./shared-port.ts";
import type { RunningProcess } from "./signals.ts";

/** A server that listens. `close` waits for `SHUTDOWN_DELAY`, finishes the requests in flight, then releases everything. */
export type Service = RunningProcess & {
  /** Resolves when the database has failed, so nothing can be stored anymore. */
  failed: Promise<void>;
  urls: PublicUrls;
  storage: Storage;
  /** The demo organization, if this start created it. */
  demo?: Demo;
};

// Requests are cut off after 10 s. If the database hangs, a purge and the deliveries hang too and are abandoned then.
const WORK_MS = 10_500;

type ServiceOptions = {
  /** How long a stop waits for requests that are on the network. */
  lingerMs?: number;
  /** Observes the statements, in addition to the metrics and traces. */
  observer?: StatementObserver;
};

/**
 * Migrates the database, creates missing keys, and listens.
 * @throws StartupError if the database or a port can't be used
 * @throws WrongEncryptionKey
 */
export async function startService(
  settings: Settings,
  log: Log,
  sendDefaults: SendDefaults = {},
  { observer, ...shutdown }: ServiceOptions = {},
): Promise<Service> {
  const clientPolicy = clientPolicyOf(settings);
  const metrics = createMetrics();
  const telemetry = await startTelemetry(settings);
  const tracing = telemetry?.tracing;
  const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), {
    clientPolicy,
    limitsOf,
    timeoutMs: settings.DATABASE_TIMEOUT * 1000,
    currentTraceparent: tracing?.currentTraceparent,
    observer: observeWithAll([metrics.statementObserver, tracing?.statementObserver, observer]),
  });
  storage.onCheckpointError((error) => log.error({ err: error }, "checkpoint failed, will retry"));
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>();
  storage.onFailure((error) => {
    log.error({ err: error }, "the database failed, stopping");
    fail();
  });
  const rateLimitStore = await createRateLimitStore(settings.REDIS_URL, log, metrics.countLimited);
  try {
    const { keys, demo } = await prepareStorage(settings, storage, log);

    // The provider needs the issuer when it is created, and with PORT=0 the issuer contains the port: listen first,
    // answer later.
    const { promise: handler, resolve: answerWith } = Promise.withResolvers<RequestListener>();
    const web = createGracefulServer((req, res) => void handler.then((handle) => handle(req, res)), {
      ...shutdown,
      leave: cluster.isWorker ? leaveSharedPort : undefined,
    });
    // Behind a proxy, all connections come from its address.
    if (settings.TRUST_PROXY === 0) limitConnections(web.server);
    const port = cluster.isWorker ? settings.PORT : await listen(web.server, "PORT", settings);
    const urls = publicUrlsOf(settings, port);
    const createFetch = (passedOn: PassedOn, ...exempt: AllowedHosts[]) =>
      createGuardedFetch({
        ...sendDefaults,
        allowed: new Set(exempt.flatMap((hosts) => [...hosts])),
        userAgent: `linkgate/${VERSION}`,
        trace: tracing?.traceOutgoing(passedOn),
      });
    const { listener, observability, useKeys, close } = createApp({
      settings,
      urls,
      storage,
      clientPolicy,
      keys,
      rateLimitStore,
      log,
      metrics,
      tracing,
      fetch: createFetch("nothing", fetchableHosts(settings)),
      fetchConfigured: createFetch("traceparent", fetchableHosts(settings)),
      fetchFromProvider: createFetch(
        "traceparent",
        fetchableHosts(settings),
        identityProviderHosts(settings),
      ),
    });
    answerWith(listener);
    if (cluster.isWorker) joinSharedPort(web.server);
    void failed.then(observability.announceStop);

    const metricsServer = createGracefulServer(new Koa().use(observability.metrics).callback(), shutdown);
    if (settings.METRICS_PORT !== undefined) await listen(metricsServer.server, "METRICS_PORT", settings);
    const sweeper = schedulePurge(storage, log);
    const keyRefresh = startKeyRefresh({ storage, settings, log, keys, use: useKeys });
    const auditChain = scheduleAuditChain(storage, log);
    const send = createSend({
      ...sendDefaults,
      allowed: settings.WEBHOOK_ALLOW_HOSTS,
      userAgent: `linkgate/${VERSION}`,
    });
    const deliveries = startDeliveries({
      queue: storage.deliveries,
      send: tracing ? tracing.traceDeliveries(send) : send,
      shortUrl: urls.short,
      onSettled: metrics.countAttempt,
      onError: (error) => log.error({ err: error }, "delivery failed, will retry"),
    });

    const mailer = createMailer(settings);
    const mails = mailer && startMails({ queue: storage.mails, mailer, base: urls.base, log });

    const waiting = new Set<string>();
    async function waitFor(what: string, end: Promise<void>) {
      waiting.add(what);
      await end;
      waiting.delete(what);
    }

    return {
      urls: urls,
      storage,
      ...(demo && { demo }),
      failed,
      async close() {
        observability.announceStop();
        if (settings.SHUTDOWN_DELAY > 0) {
          web.announceStop();
          await waitFor("SHUTDOWN_DELAY", sleep(settings.SHUTDOWN_DELAY * 1000));
        }
        const work = Promise.allSettled([
          waitFor("requests", web.shutDown()),
          metricsServer.server.listening ? waitFor("metrics", metricsServer.shutDown()) : undefined,
          waitFor("sweep", sweeper.stop()),
          waitFor("keys", keyRefresh.stop()),
          waitFor("audit log", auditChain.stop()),
          waitFor("deliveries", deliveries.stop()),
          mails && waitFor("mails", mails.stop()),
        ]);
        const stopped = work.then(async (steps) => {
          await close();
          const failed = steps.find(({ status }) => status === "rejected");
          if (failed) throw (failed as PromiseRejectedResult).reason;
        });
        try {
          await Promise.race([stopped, sleep(WORK_MS, undefined, { ref: false })]);
        } finally {
          rateLimitStore.close();
          await waitFor("database", storage.close());
          await metrics.handOver();
          if (telemetry) await waitFor("OpenTelemetry", telemetry.stop());
        }
      },
      waitingFor: () => [...waiting],
    };
  } catch (error) {
    rateLimitStore.close();
    await storage.close();
    throw error;
  }
}

/**
 * Migrates the database and creates missing keys and the demo organization; with workers, one process does it for all.
 * @throws StartupError if the database can't be reached
 * @throws WrongEncryptionKey
 */
export async function prepareStorage(
  settings: Settings,
  storage: Storage,
  log: Log,
): Promise<{ keys: Keys; demo?: Demo }> {
  try {
    await storage.migrate();
    await createMissingKey(settings, storage);
    const newer = cluster.isPrimary ? await storage.newerMigrations() : [];
    if (newer.length > 0)
      log.warn({ newer }, "the database was migrated by a newer version; this version can use it");
    const keys = await loadKeys(storage.keys);
    const demo = settings.INTROSPECTION_URL ? undefined : await createDemo(settings, storage);
    return { keys, ...(demo && { demo }) };
  } catch (error) {
    throw toStartupError(error, settings.DATABASE_URL);
  }
}

/** Starts to send traces if OpenTelemetry is configured. Its packages are not loaded otherwise. */
async function startTelemetry({ telemetry }: Settings): Promise<Telemetry | undefined> {
  if (!telemetry) return undefined;
  const { startOpenTelemetry } = await import("../observability/opentelemetry.ts");
  return startOpenTelemetry(telemetry);
}

/** Listens on the port of a setting; returns the actual port. @throws StartupError */
export async function listen(
  server: Server,
  setting: "PORT" | "METRICS_PORT",
  settings: Settings,
): Promise<number> {
  const { HOST, [setting]: port = 0 } = settings;
  try {
    server.listen(port, HOST);
    await once(server, "listening");
  } catch (error) {
    throw toListenError(error as Error, setting, port, HOST);
  }
  return (server.address() as AddressInfo).port;
}
