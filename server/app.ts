import type { EventEmitter } from "node:events";
import type { Context } from "koa";
import type { Provider } from "oidc-provider";
import type { Storage } from "../adapters/index.ts";
import { resources } from "../resources/index.ts";
import type { Addresses } from "../resources/metadata.ts";
import { findAccount } from "./accounts.ts";
import { trustProxies } from "./address.ts";
import { hostsOf, originsOf } from "./addresses.ts";
import { assets } from "./assets.ts";
import type { Settings } from "./config.ts";
import { createCsrf } from "./csrf.ts";
import { commonHeaders } from "./headers.ts";
import { checkHost } from "./host.ts";
import { interactions } from "./interactions.ts";
import { createLimits } from "./limits.ts";
import type { Log } from "./log.ts";
import { createOperations, type Operations } from "./operations.ts";
import { createPasswords } from "./passwords.ts";
import { completeAnswers } from "./provider/answers.ts";
import { createProvider } from "./provider/index.ts";
import type { Keys } from "./provider/keys.ts";
import { authorizeByForm, oauthPaths } from "./provider/paths.ts";
import { passwordReset } from "./reset.ts";
import { createSignIn } from "./sign-in.ts";
import { VERSION } from "./version.ts";
import { messagePage } from "./views/page.ts";

type AppOptions = { settings: Settings; addresses: Addresses; storage: Storage; keys: Keys; log: Log };

/**
 * Joins the parts into one Koa application: oidc-provider's own, with everything else in front of its routes. The
 * list at the end is the order in which a request meets them.
 */
export function createApp({ settings, addresses, storage, keys, log }: AppOptions): {
  app: Provider;
  operations: Operations;
} {
  const { accounts, clients, grants, organizations } = storage;
  const limits = createLimits(settings.RATE_LIMIT);
  const passwords = createPasswords();
  const origins = originsOf(settings, addresses);
  const operations = createOperations({ storage, log, metricsApart: settings.METRICS_PORT !== undefined });
  const introspect = storage.findActiveToken;
  const onError = (error: unknown, ctx?: Context) =>
    log.error({ err: error, request_id: ctx?.state.requestId }, "unexpected error");

  const provider = createProvider({
    settings,
    addresses,
    keys,
    clients,
    limits,
    origins,
    adapter: storage.oidcAdapter,
    findAccount: findAccount({ accounts, grants }),
    renderError: (ctx, out) => {
      ctx.type = "html";
      ctx.body = messagePage("This did not work", out.error_description ?? out.error);
    },
  });
  trustProxies(provider, settings.TRUST_PROXY);
  provider.on("server_error", (ctx: Context, error: unknown) => onError(error, ctx));
  (provider as EventEmitter).on("error", onError);

  const middleware = [
    commonHeaders({ secure: addresses.base.startsWith("https:") }),
    operations.probes,
    operations.observe,
    checkHost(hostsOf(addresses), addresses.base),
    assets,
    ...resources({
      introspect,
      links: storage.links,
      organizations,
      addresses,
      origins,
      cursorSecret: keys.signing,
      version: VERSION,
      onError,
      refusalPage: (status, detail) =>
        messagePage(status === 404 ? "No such link" : "This link is over", detail),
    }),
    oauthPaths,
    limits.oauth,
    authorizeByForm,
    ...completeAnswers({ settings, introspect }),
    ...interactions({
      provider,
      storage,
      csrf: createCsrf(keys.signing),
      signIn: createSignIn(accounts, passwords, limits),
    }),
    passwordReset(accounts, passwords),
  ];
  for (const step of middleware) provider.use(step);
  return { app: provider, operations };
}
