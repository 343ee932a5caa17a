import type { EventEmitter } from "node:events";
import Koa, { type Middleware } from "koa";
import { area, below, of } from "../resources/area.ts";
import { type Cores, createCores } from "../resources/cores.ts";
import { resources } from "../resources/index.ts";
import type { Introspect } from "../resources/ports.ts";
import { trustProxies } from "./address.ts";
import { hostsOf, originsOf } from "./addresses.ts";
import { assets } from "./assets.ts";
import { authorizationServer } from "./authorization.ts";
import { createCallCounter } from "./calls.ts";
import type { Settings } from "./config.ts";
import { docs } from "./docs.ts";
import { explainFailures } from "./failures.ts";
import { commonHeaders } from "./headers.ts";
import { checkHost } from "./host.ts";
import { introspectOver } from "./introspection.ts";
import { landing } from "./landing.ts";
import { createOperations, type Operations } from "./operations.ts";
import { isOutage } from "./outage.ts";
import type { OnError, Parts } from "./parts.ts";
import { answerInJson, isForPrograms } from "./provider/paths.ts";
import { trailingSlash } from "./trailing-slash.ts";
import { VERSION } from "./version.ts";
import { messagePage } from "./views/page.ts";

/**
 * Joins the parts into one Koa application: oidc-provider's own with everything else in front of its routes, or the
 * resources alone where another server knows the tokens.
 */
export function createApp(options: Parts): { app: Koa; operations: Operations } {
  const { settings, addresses, storage, keys, log } = options;
  const operations = createOperations({ storage, log, metricsApart: settings.METRICS_PORT !== undefined });
  const onError: OnError = (error, ctx) =>
    log.error(
      { err: error, request_id: ctx?.state.requestId },
      isOutage(error) ? "outage" : "unexpected error",
    );

  const cores = createCores({
    stores: storage,
    webhookAllowHosts: settings.WEBHOOK_ALLOW_HOSTS,
    addresses,
    cursorSecret: keys.signing,
  });
  const parts = { ...options, cores };
  const remote = remoteIntrospection(settings);
  const { app, middleware } = remote
    ? { app: new Koa(), middleware: [landing(addresses)] }
    : authorizationServer(parts, onError);
  trustProxies(app, settings.TRUST_PROXY);
  (app as EventEmitter).on("error", onError);
  const introspect = remote ?? storage.findActiveToken;
  for (const step of [...front(parts, operations, onError, introspect), ...middleware]) app.use(step);
  return { app, operations };
}

function remoteIntrospection(settings: Settings): Introspect | undefined {
  const { INTROSPECTION_URL, INTROSPECTION_CLIENT_ID, INTROSPECTION_CLIENT_SECRET } = settings;
  if (!INTROSPECTION_URL) return undefined;
  return introspectOver({
    url: INTROSPECTION_URL,
    clientId: INTROSPECTION_CLIENT_ID,
    clientSecret: INTROSPECTION_CLIENT_SECRET as string,
  });
}

/** What every request meets, in this order, up to the resources. */
function front(
  { settings, addresses, storage, counters, cores }: Parts & { cores: Cores },
  operations: Operations,
  onError: OnError,
  introspect: Introspect,
): Middleware[] {
  const protectedParts = resources({
    introspect,
    cores,
    ...(settings.RATE_LIMIT && { calls: createCallCounter(counters) }),
    idempotency: storage.idempotency,
    addresses,
    origins: originsOf(settings, addresses),
    behindProxy: settings.TRUST_PROXY > 0,
    version: VERSION,
    onError,
    refusalPage: (status, detail) =>
      status === 404
        ? messagePage(
            "No such link",
            "Check the address: it may have been mistyped, or the link was deleted.",
          )
        : messagePage("This link is over", detail),
  });
  return [
    commonHeaders({ secure: addresses.base.startsWith("https:") }),
    operations.probes,
    operations.observe,
    area(isForPrograms, [answerInJson]),
    explainFailures(onError),
    checkHost(hostsOf(addresses), addresses.base),
    area(below("/assets/"), [assets]),
    ...trailingSlash(addresses.base),
    area(of(`${addresses.base}/docs`), [docs(protectedParts, addresses)]),
    ...protectedParts.middleware,
  ];
}
