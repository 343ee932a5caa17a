import type { Context, Middleware } from "koa";
import { area, below, of } from "./area.ts";
import { createGate } from "./bearer.ts";
import type { Cores } from "./cores.ts";
import { allowOrigins } from "./cors.ts";
import { createOnce, type IdempotencyStore } from "./idempotency.ts";
import { limitCalls } from "./limits.ts";
import { followLink, isShortLink } from "./links/redirect.ts";
import { createReadVisit } from "./links/visit.ts";
import { mcpEndpoint } from "./mcp/endpoint.ts";
import type { Tool } from "./mcp/tool.ts";
import { createTools } from "./mcp/tools.ts";
import { type Addresses, metadataUrl, resourceMetadata } from "./metadata.ts";
import type { OpenApiDocument } from "./openapi/document.ts";
import type { CallCounter, Introspect } from "./ports.ts";
import { problems } from "./problem.ts";
import { nextStepOf } from "./problems.ts";
import { api } from "./v1.ts";

export type ResourceOptions = {
  introspect: Introspect;
  cores: Cores;
  /** Where answers are kept to be given again. */
  idempotency: IdempotencyStore;
  /** Counts calls for the limits; absent, nothing is limited. */
  calls?: CallCounter;
  addresses: Addresses;
  /** Browser origins that may call by CORS. */
  origins: ReadonlySet<string>;
  /** Whether a proxy of ours is in front, whose header tells the country of a visitor. */
  behindProxy: boolean;
  version: string;
  /** Told about whatever is answered with 500. */
  onError(error: unknown, ctx?: Context): void;
  /** Shows a refusal to a person who followed a short link in a browser. */
  refusalPage(status: number, detail: string): string;
};

/** Everything that a token protects, and the short links. */
export type Resources = {
  /** In this order. */
  middleware: Middleware[];
  /** What the REST API says about itself. */
  document: OpenApiDocument;
  /** What MCP says about itself. */
  tools: Tool[];
};

/** Makes them, of the cores and whoever knows the tokens. */
export function resources(options: ResourceOptions): Resources {
  const { introspect, cores, addresses, origins, behindProxy, onError, refusalPage, version } = options;
  const { links } = cores;
  const shortUrl = addresses.short;

  const once = createOnce(options.idempotency, onError);
  const limits = limitCalls(options.calls);
  const gateOf = (resource: string) =>
    createGate({
      introspect,
      audiences: [resource, addresses.base],
      limits,
      metadataUrl: metadataUrl(resource),
    });
  const tools = createTools({ ...cores, shortUrl });
  const mcp = mcpEndpoint({
    gate: gateOf(addresses.mcp),
    tools,
    once,
    mcpUrl: addresses.mcp,
    origins,
    version,
    onError,
  });
  const docsUrl = `${addresses.base}/docs`;
  const answer = problems({ docsUrl, onError });
  const answerAgent = problems({
    docsUrl,
    onError,
    nextStep: ({ code, headers }) => nextStepOf(code, headers),
  });
  const v1 = api({ gate: gateOf(addresses.api), ...cores, addresses, once, version });

  return {
    document: v1.document,
    tools,
    middleware: [
      area(below("/.well-known/"), [resourceMetadata(addresses)]),
      area(of(addresses.api), [answer, allowOrigins(origins), limits.address, ...v1.middleware]),
      area(of(addresses.mcp), [answerAgent, allowOrigins(origins), limits.address, mcp]),
      area(isShortLink(shortUrl, links), [
        showRefusals(refusalPage),
        answer,
        followLink(links, createReadVisit(behindProxy)),
      ]),
    ],
  };
}

/** A short link is followed by people: in a browser its refusal is a page. */
function showRefusals(page: ResourceOptions["refusalPage"]): Middleware {
  return async function showRefusal(ctx, next) {
    await next();
    if (ctx.status < 400) return;
    // RFC 9110 §15.5.5 and §15.5.11: caches may keep a 404 and a 410, but a link may be made or come back.
    ctx.set("Cache-Control", "no-store");
    ctx.vary("Accept");
    if (ctx.accepts("json", "html") === "html") {
      const { detail } = ctx.body as { detail: string };
      ctx.body = page(ctx.status, detail);
      ctx.type = "html";
    }
  };
}
