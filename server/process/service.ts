import cluster from "node:cluster";
import { Resolver } from "node:dns/promises";
import type { RequestListener } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Koa from "koa";
import { observeWithAll, type StatementObserver } from "../../adapters/database/statement-observer.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { ResolveTxt } from "../../resources/domains/service.ts";
import { createGuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import type { AllowedHosts } from "../../resources/outbound/ssrf-guard.ts";
import { limitsOf } from "../../resources/plans.ts";
import { startDeliveries } from "../../resources/webhooks/dispatcher.ts";
import { createSend, type SendDefaults } from "../../resources/webhooks/send.ts";
import { createApp } from "../app.ts";
import { appPolicyCheckOf } from "../clients/app-policy.ts";
import { createDemo, type ShowDemo } from "../demo.ts";
import { encryptionKeys } from "../keys/encryption-keys.ts";
import { startKeyRefresh } from "../keys/refresh.ts";
import type { Log } from "../log.ts";
import { createMailer, type Mailer, startMails } from "../mail/dispatcher.ts";
import { createMetrics } from "../observability/metrics.ts";
import type { PassedOn } from "../observability/tracing.ts";
import { limitConnections } from "../rate-limits/connections.ts";
import { createRateLimitStore } from "../rate-limits/store.ts";
import { type Schedule, schedule } from "../schedule.ts";
import type { Settings } from "../settings/config.ts";
import { fetchableHosts, identityProviderHosts, publicUrlsOf } from "../settings/public-urls.ts";
import { VERSION } from "../version.ts";
import { createGracefulServer } from "./graceful-server.ts";
import { listen, prepareStorage } from "./prepare.ts";
import { joinSharedPort, leaveSharedPort } from "./shared-port.ts";
import type { RunningProcess } from "./signals.ts";

/** `close` waits for `SHUTDOWN_DELAY`, finishes the requests in flight, then releases everything. */
export type Service = RunningProcess & {
  failed: Promise<void>;
  port: number;
  urls: PublicUrls;
  storage: Storage;
};

// Requests are cut off after 10 s. If the database hangs, a purge and the deliveries hang too and are abandoned then.
const WORK_MS = 10_500;

const CHAIN_EVERY_MS = 1000;
// Each domain is due once a day.
const DOMAIN_CHECKS_MS = 10 * 60_000;
const DNS = { timeout: 3000, tries: 2 };
// Soon after the start, because rows may have expired while the server was down, but not during it.
const PURGES = { firstAfterMs: 5000, everyMs: 60_000 };

type ServiceOptions = {
  lingerMs?: number;
  observer?: StatementObserver;
  /** Takes the place of the server of `SMTP_URL`. */
  mailer?: Mailer;
  showDemo?: ShowDemo;
  /** Takes the place of the resolver of this machine. */
  resolveTxt?: ResolveTxt;
};

/** Throws StartupError if the database or a port can't be used, or WrongEncryptionKey. */
export async function startService(
  settings: Settings,
  log: Log,
  sendDefaults: SendDefaults = {},
  {
    observer,
    mailer = createMailer(settings),
    showDemo,
    resolveTxt = createResolveTxt(),
    ...shutdown
  }: ServiceOptions = {},
): Promise<Service> {
  const appPolicyCheck = appPolicyCheckOf(settings);
  const metrics = createMetrics(log);
  // The packages of OpenTelemetry are loaded only if it is configured.
  const telemetry =
    settings.telemetry &&
    (await import("../observability/tracing.ts")).startOpenTelemetry(settings.telemetry);
  const tracing = telemetry?.tracing;
  const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), {
    appPolicyCheck,
    limitsOf,
    clickDetailDays: settings.CLICK_DETAIL_DAYS,
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
  const rateLimitStore = await createRateLimitStore(settings, metrics.degraded.redis, metrics.countLimited);
  try {
    const keys = await prepareStorage(settings, storage, log);

    // With PORT=0, the issuer contains the port, and the provider needs the issuer: listen first, answer later.
    const { promise: handler, resolve: answerWith } = Promise.withResolvers<RequestListener>();
    const web = createGracefulServer(handler, {
      ...shutdown,
      leave: cluster.isWorker ? leaveSharedPort : undefined,
    });
    // Behind a proxy, all connections come from its address.
    if (settings.TRUST_PROXY === 0) limitConnections(web.server);
    const port = cluster.isWorker ? settings.PORT : await listen(web.server, "PORT", settings);
    const urls = publicUrlsOf(settings, port);
    const userAgent = `linkgate/${VERSION}`;
    const createFetch = (passedOn: PassedOn, allowed: AllowedHosts) =>
      createGuardedFetch({ ...sendDefaults, allowed, userAgent, trace: tracing?.traceOutgoing(passedOn) });
    const fetchable = fetchableHosts(settings);
    const { listener, observability, domains, useKeys, close } = createApp({
      settings,
      urls,
      storage,
      appPolicyCheck,
      keys,
      rateLimitStore,
      log,
      metrics,
      tracing,
      fetch: createFetch("nothing", fetchable),
      fetchConfigured: createFetch("traceparent", fetchable),
      fetchFromProvider: createFetch(
        "traceparent",
        new Set([...fetchable, ...identityProviderHosts(settings)]),
      ),
      resolveTxt,
    });
    answerWith(listener);
    if (cluster.isWorker) joinSharedPort(web.server);
    void failed.then(observability.announceStop);

    const metricsServer = createGracefulServer(new Koa().use(observability.metrics).callback(), shutdown);
    if (settings.METRICS_PORT !== undefined) await listen(metricsServer.server, "METRICS_PORT", settings);
    if (cluster.isPrimary) await createDemo(settings, storage, log, (demo) => showDemo?.(demo, urls, port));
    const sweeper = schedulePurge(storage, log);
    const keyRefresh = startKeyRefresh({ storage, settings, log, keys, use: useKeys });
    const auditChain = scheduleAuditChain(storage, log);
    const domainChecks = schedule(
      domains.checkRecords,
      (error) => log.warn({ err: error }, "checking domains failed, will retry"),
      { everyMs: DOMAIN_CHECKS_MS },
    );
    const send = createSend({ ...sendDefaults, allowed: settings.WEBHOOK_ALLOW_HOSTS, userAgent });
    const deliveries = startDeliveries({
      queue: storage.deliveries,
      send: tracing ? tracing.traceDeliveries(send) : send,
      shortUrl: urls.short,
      onSettled: metrics.countAttempt,
      onError: (error) => log.error({ err: error }, "delivery failed, will retry"),
    });

    const mails = mailer && startMails({ queue: storage.mails, mailer, base: urls.base, log });

    const waiting = new Set<string>();
    async function waitFor(what: string, end: Promise<void>) {
      waiting.add(what);
      await end;
      waiting.delete(what);
    }

    return {
      port,
      urls,
      storage,
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
          waitFor("domains", domainChecks.stop()),
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

function createResolveTxt(): ResolveTxt {
  const resolver = new Resolver(DNS);
  return (name) => resolver.resolveTxt(name);
}

function schedulePurge(storage: Storage, log: Log): Schedule {
  return schedule(
    async (signal) => log.debug({ deleted: await storage.purgeExpired(signal) }, "purged expired rows"),
    (error) => log.warn({ err: error }, "purge failed, will retry"),
    PURGES,
  );
}

function scheduleAuditChain({ auditChain }: Storage, log: Log): Schedule {
  const { stop } = schedule(
    auditChain.appendAll,
    (error) => log.warn({ err: error }, "chaining the audit log failed, will retry"),
    { everyMs: CHAIN_EVERY_MS },
  );
  return {
    async stop() {
      await stop();
      await auditChain.release().catch(() => {}); // another process continues once the lease has expired
    },
  };
}
