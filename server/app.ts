import Koa, { type Context } from "koa";
import { isUnavailable } from "../resources/http/problem.ts";
import {
  bySegment,
  firstSegmentOf,
  isAt,
  isBelow,
  isOfResource,
  mount,
  type Part,
  requireRead,
} from "../resources/http/routing.ts";
import { createResources, type Resources } from "../resources/index.ts";
import { createServices } from "../resources/services.ts";
import { createLinkPasswords } from "./auth/link-passwords.ts";
import { authorizationServer } from "./authorization-server.ts";
import { createPasswords } from "./credentials/passwords.ts";
import type { Dependencies } from "./dependencies.ts";
import { CLIENT_PATH, createDocumentation, docs } from "./docs/index.ts";
import { assets, siteFiles } from "./http/assets.ts";
import { trustProxies } from "./http/client-ip.ts";
import { compressTexts } from "./http/compression.ts";
import { createRespondWithError, handleErrors, type OnError } from "./http/error-pages.ts";
import { linkPages } from "./http/link-pages.ts";
import { GUESSED_SEGMENTS, redirectDashboardSlash, redirectGuesses } from "./http/redirects.ts";
import {
  checkFraming,
  checkHost,
  extendRequests,
  normalizeRequests,
  separateDomains,
  separateHosts,
} from "./http/requests.ts";
import { commonHeaders, domainHeaders } from "./http/security-headers.ts";
import { createFindCountry } from "./http/visitor-country.ts";
import { nonceSecretOf } from "./keys/shared-keys.ts";
import { landing } from "./landing/routes.ts";
import { createObservability } from "./observability/index.ts";
import { managementDocument } from "./operations/document.ts";
import { isClientPath, isOauthPath } from "./provider/endpoints.ts";
import { acceptJson, linkErrors } from "./provider/responses.ts";
import { createCallCounter, createTestCounter, limitPages, PAGE_SEGMENTS } from "./rate-limits/store.ts";
import { createRemoteIntrospect } from "./remote-introspection.ts";
import { hostsOf, originsOf } from "./settings/public-urls.ts";
import { sectionPath } from "./ui/dashboard-layout.ts";
import { VERSION } from "./version.ts";

// The extensions of MCP for authorization.
const CLIENT_CREDENTIALS = "io.modelcontextprotocol/oauth-client-credentials";
const ENTERPRISE = "io.modelcontextprotocol/enterprise-managed-authorization";

const WITHOUT_SIGN_IN = { findReader: undefined, useKeys() {}, close: async () => {} };

/** The application, in which oidc-provider is mounted last; with remote introspection, it serves only the resources. */
export function createApp(options: Dependencies) {
  const { settings, urls, storage, keys, tracing, log, rateLimitStore } = options;
  const observability = createObservability(options);
  const onError: OnError = (error, ctx) =>
    log.error(
      { err: error, request_id: ctx?.state.requestId },
      isUnavailable(error) ? "outage" : "unexpected error",
    );

  const respondWithError = createRespondWithError(urls, isOauthPath);
  const showErrors = handleErrors(onError, respondWithError);

  const passwords = createPasswords(settings.RATE_LIMIT);
  const services = createServices({
    stores: storage,
    linkPasswords: createLinkPasswords({ ...storage, passwords, rateLimitStore }),
    webhookAllowHosts: settings.WEBHOOK_ALLOW_HOSTS,
    resolveTxt: options.resolveTxt,
    allowsLocalhost: !settings.isProduction,
    countTest: createTestCounter(rateLimitStore),
    urls,
    cursorSecret: keys.signing,
  });
  const remote = settings.INTROSPECTION_URL
    ? createRemoteIntrospect(settings.INTROSPECTION_URL, settings, tracing?.traceOutgoing("everything"))
    : undefined;
  const app = new Koa();
  const {
    parts: signInParts,
    findReader,
    useKeys,
    close,
  } = remote
    ? { ...WITHOUT_SIGN_IN, parts: [{ at: [""], steps: [landing(urls)] }] }
    : authorizationServer(app, { ...options, services, passwords }, onError, respondWithError);
  trustProxies(app, settings.TRUST_PROXY);
  extendRequests(app, urls.base);
  app.on("error", (error, ctx) => {
    if (!isOfConnection(error, ctx)) onError(error, ctx);
  });
  const documentation = createDocumentation({
    urls,
    describe: () => protectedParts,
    ...(!remote && { describeManagement: () => managementDocument({ settings, urls }) }),
  });
  const protectedParts: Resources = createResources({
    introspect: remote ?? storage.findActiveToken,
    dpop: {
      isFirstUse: ({ jkt, jti, expiresAt }) =>
        storage.replays.useOnce({ issuer: `dpop:${jkt}`, jti, expiresAt }),
      nonceSecret: nonceSecretOf(keys),
    },
    services,
    ...(rateLimitStore.isOn && { calls: createCallCounter(rateLimitStore) }),
    idempotency: storage.idempotency,
    urls,
    origins: originsOf(settings, urls),
    findCountry: createFindCountry(settings, log),
    version: VERSION,
    signingSecret: keys.signing,
    mcpExtensions: settings.IDP_ISSUER ? [CLIENT_CREDENTIALS, ENTERPRISE] : [CLIENT_CREDENTIALS],
    documentation,
    webhookPageUrl: (organizationId, id) => `${urls.base}${sectionPath(organizationId, "webhooks")}/${id}`,
    onError,
    linkPages,
    shortRedirects: {
      rootRedirectUrl: settings.SHORT_ROOT_REDIRECT_URL ?? null,
      notFoundUrl: settings.SHORT_NOT_FOUND_URL ?? null,
    },
  });
  const setHeaders = commonHeaders(urls.base.startsWith("https:"));
  const site: Part[] = [
    setHeaders,
    { at: [...COMPRESSED_SEGMENTS, firstSegmentOf(new URL(urls.api).pathname)], steps: [compressTexts] },
    observability.observe,
    {
      at: ["oauth", ...[urls.api, urls.mcp].map((url) => firstSegmentOf(new URL(url).pathname))],
      steps: [observability.countOutcome],
    },
    { at: ["oauth", ".well-known"], steps: [mount(isClientPath, [acceptJson, linkErrors(urls.base)])] },
    showErrors,
    checkFraming,
    { at: ["healthz", "readyz", "metrics"], steps: [observability.probes] },
    checkHost(hostsOf(urls), urls.base),
    {
      at: ["favicon.ico", "robots.txt", ".well-known"],
      steps: [siteFiles(urls.base, settings.SECURITY_CONTACT)],
    },
    separateHosts(urls, services.links.isReserved),
    { at: ["assets"], steps: [mount(isBelow("/assets/"), [requireRead, assets])] },
    { at: ["dashboard"], steps: [redirectDashboardSlash(urls.base)] },
    ...(remote ? [] : [{ at: GUESSED_SEGMENTS, steps: [redirectGuesses(urls.base)] }]),
    { at: PAGE_SEGMENTS, steps: limitPages(rateLimitStore) },
    {
      at: DOCS_SEGMENTS,
      steps: [mount(isDocs(urls.base), [requireRead, docs({ urls, documentation, findReader })])],
    },
    ...protectedParts.parts,
    ...signInParts,
  ];
  const domainSite = [domainHeaders, observability.observe, ...protectedParts.domainSteps(checkFraming)];
  app.use(separateDomains(hostsOf(urls), services.domains.resolve, domainSite));
  app.use(bySegment(site));
  const listener = normalizeRequests(app.callback(), urls);
  return {
    app,
    domains: services.domains,
    listener: tracing ? tracing.traceRequests(listener) : listener,
    observability,
    useKeys,
    close,
  };
}

/** Koa reports what happens to a connection, too: its client closes it, or sends what isn't HTTP after a request. */
function isOfConnection(error: { code?: string } | undefined, ctx: Context | undefined): boolean {
  return error?.code?.startsWith("HPE_") || (error !== undefined && error === ctx?.req.socket?.errored);
}

// Other texts have no-store, are short, or are error pages and the keys, which are compressed where they are written.
const COMPRESSED_SEGMENTS = [
  "",
  ".well-known",
  "assets",
  "auth",
  "docs",
  "favicon.ico",
  "interaction",
  "llms.txt",
  "metrics",
  "openapi.json",
  "robots.txt",
];

const DOCS_FILES = ["/llms.txt", "/openapi.json", CLIENT_PATH];
const DOCS_SEGMENTS = ["docs", ...DOCS_FILES.map(firstSegmentOf)];

function isDocs(base: string): (ctx: Context) => boolean {
  const isPage = isOfResource(`${base}/docs`);
  const others = DOCS_FILES.map((path) => isAt(base + path));
  return (ctx) => isPage(ctx) || others.some((isOther) => isOther(ctx));
}
