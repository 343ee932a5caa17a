import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import { createBearerCheck } from "./access/bearer.ts";
import { createCheckProof, createDpopNonces, type IsFirstUse } from "./access/dpop.ts";
import type { Introspect } from "./access/introspect.ts";
import { type CallCounter, createRateLimit } from "./access/rate-limit.ts";
import { metadataUrl, type PublicUrls, resourceMetadata, withSlash } from "./access/resource-metadata.ts";
import { domainRoutes } from "./domains/routes.ts";
import { domainSteps, redirectRoot, redirectUnknown, type SiteRedirects } from "./domains/site.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "./events/delivered-events.ts";
import { allowEveryOrigin, allowOrigins } from "./http/cors.ts";
import { ACCEPT_PATCH } from "./http/json-body.ts";
import { createErrorHandler, notFound } from "./http/problem.ts";
import { nextStepOf } from "./http/problem-codes.ts";
import {
  firstSegmentOf,
  isAt,
  isBelow,
  isOfResource,
  mount,
  OTHER_SEGMENTS,
  type Part,
  requireRead,
  routesOf,
} from "./http/routing.ts";
import { createRunOnce, type IdempotencyStore } from "./idempotency/run-once.ts";
import { lazy } from "./lazy.ts";
import { createRedirects, type FindCountry, type LinkPages } from "./links/redirect.ts";
import { linkRoutes } from "./links/routes.ts";
import { createMcpEndpoint } from "./mcp/endpoint.ts";
import { type Offer, offerAll, offerReads } from "./mcp/offer.ts";
import type { Documentation } from "./mcp/resources.ts";
import { toolsOf } from "./mcp/tool.ts";
import { buildDocument, serveDocument } from "./openapi/document.ts";
import { createDeclare } from "./openapi/operation.ts";
import { organizationRoutes } from "./organization/routes.ts";
import type { Services } from "./services.ts";
import { type WebhookPageUrl, webhookRoutes } from "./webhooks/routes.ts";

export type ResourceOptions = {
  introspect: Introspect;
  /** Checks DPoP proofs. The secret of the nonces has 32 bytes; all processes share it. */
  dpop: { isFirstUse: IsFirstUse; nonceSecret: Buffer };
  services: Services;
  idempotency: IdempotencyStore;
  /** Counts calls for the rate limits; if absent, nothing is limited. */
  calls?: CallCounter;
  urls: PublicUrls;
  origins: ReadonlySet<string>;
  findCountry: FindCountry | undefined;
  version: string;
  /** Signs what clients hold between two requests; shared by all processes. */
  signingSecret: string;
  webhookPageUrl: WebhookPageUrl;
  mcpExtensions: readonly string[];
  documentation: Documentation;
  /** Called with each error that is answered with a 5xx. */
  onError(error: unknown, ctx?: Pick<Context, "state">): void;
  linkPages: LinkPages;
  /** Those of the host of short links, if it has nothing else. */
  shortRedirects: SiteRedirects;
};

export type Resources = ReturnType<typeof createResources>;

export function createResources(options: ResourceOptions) {
  const { introspect, services, urls, origins, onError, version, webhookPageUrl } = options;
  const { links } = services;

  const redirects = createRedirects(links, urls.short, options);
  const runOnce = createRunOnce(options.idempotency, onError);
  const limits = createRateLimit(options.calls);
  const { isFirstUse, nonceSecret } = options.dpop;
  const nonces = createDpopNonces(nonceSecret);
  const bearerCheckOf = (resource: string, url = resource, including: string[] = []) =>
    createBearerCheck({
      introspect,
      checkProof: createCheckProof({ origin: new URL(resource).origin, nonces, isFirstUse }),
      audiences: [resource, urls.base, ...including],
      limits,
      metadataUrl: metadataUrl(url),
    });
  const router = new Router({ sensitive: true, strict: true });
  const { declare, operations } = createDeclare(router, { bearerCheck: bearerCheckOf(urls.api), runOnce });
  linkRoutes(declare, { links, shortUrl: urls.short });
  domainRoutes(declare, services.domains);
  webhookRoutes(declare, { ...services, shortUrl: urls.short, webhookPageUrl });
  organizationRoutes(declare, services.showOrganization);
  // Building it takes longer than the rest of the startup.
  const document = lazy(() => buildDocument(operations, { urls, version, events: WEBHOOK_EVENT_SCHEMAS }));
  serveDocument(declare, document);
  const tools = operations.flatMap((operation) => toolsOf(operation, runOnce));
  // RFC 9728 §3.3: the metadata in a challenge must be that of the URL that was called, with or without the slash.
  const mcpEndpoints = (resource: string, offer: Offer, including?: string[]) =>
    [resource, withSlash(resource)].map((mcpUrl) =>
      createMcpEndpoint({
        ...offer,
        bearerCheck: bearerCheckOf(resource, mcpUrl, including),
        links,
        shortUrl: urls.short,
        documentation: options.documentation,
        mcpUrl,
        signingSecret: options.signingSecret,
        extensions: options.mcpExtensions,
        origins,
        version,
        onError,
      }),
    );
  const handleErrors = createErrorHandler({ base: urls.base, onError });
  const handleMcpErrors = createErrorHandler({ base: urls.base, onError, nextStep: nextStepOf });
  const linkSteps = [redirects.showErrorPage, handleErrors];
  const shortRedirects = () => options.shortRedirects;
  const onShortHost = [
    ...linkSteps,
    ...(shortRedirects().notFoundUrl ? [redirectUnknown(shortRedirects)] : []),
  ];
  const preview = [requireRead, redirects.showPreview];
  const follow = [redirects.askForPassword, redirects.unlockLink, requireRead, redirects.followLink];
  const partOf = (resource: string, handler: Middleware, steps: Middleware[]): Part => ({
    at: [firstSegmentOf(new URL(resource).pathname)],
    steps: [mount(isOfResource(resource), [handler, allowOrigins(origins), limits.address, ...steps])],
  });

  return {
    document,
    tools,
    /** What the host of a domain serves instead of these parts, after a check of the request. */
    domainSteps: (check: Middleware): Middleware[] => [
      ...linkSteps,
      check,
      ...domainSteps(services.domains, { ...redirects, preview, follow }),
    ],
    /** To be used in this order. */
    parts: [
      {
        at: [".well-known"],
        steps: [mount(isBelow("/.well-known/"), [allowEveryOrigin, requireRead, resourceMetadata(urls)])],
      },
      partOf(urls.api, handleErrors, [...routesOf(router, ACCEPT_PATCH), rejectUnknownPaths]),
      partOf(urls.mcpRead, handleMcpErrors, mcpEndpoints(urls.mcpRead, offerReads(tools), [urls.mcp])),
      partOf(urls.mcp, handleMcpErrors, mcpEndpoints(urls.mcp, offerAll(tools))),
      { at: [""], steps: [mount(isAt(`${urls.short}/`), [redirectRoot(shortRedirects)])] },
      {
        at: [OTHER_SEGMENTS],
        steps: [
          mount(redirects.isPreview, [...onShortHost, ...preview]),
          mount(redirects.isShortLink, [...onShortHost, ...follow]),
        ],
      },
    ],
  };
}

const rejectUnknownPaths: Middleware = function rejectPath() {
  throw notFound("URL");
};
