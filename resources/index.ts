import type { Context, Middleware } from "koa";
import { area, below, of } from "./area.ts";
import { createGate } from "./bearer.ts";
import { allowOrigins } from "./cors.ts";
import { createCursors } from "./cursor.ts";
import { createLinks } from "./links/links.ts";
import { followLink, isShortLink } from "./links/redirect.ts";
import { mcpEndpoint } from "./mcp/endpoint.ts";
import { createTools } from "./mcp/tools.ts";
import { type Addresses, metadataUrl, resourceMetadata } from "./metadata.ts";
import { createShowOrganization } from "./organization.ts";
import type { Introspect, LinkStore, OrganizationReader } from "./ports.ts";
import { problems } from "./problem.ts";
import { api } from "./v1.ts";

export type ResourceOptions = {
  introspect: Introspect;
  links: LinkStore;
  organizations: OrganizationReader;
  addresses: Addresses;
  /** Browser origins that may call by CORS. */
  origins: ReadonlySet<string>;
  /** Signs cursors; the same in every process. */
  cursorSecret: string;
  version: string;
  /** Told about whatever is answered with 500. */
  onError(error: unknown, ctx?: Context): void;
  /** Shows a refusal to a person who followed a short link in a browser. */
  refusalPage(status: number, detail: string): string;
};

/** Everything that a token protects, and the short links, as middleware in order. */
export function resources(options: ResourceOptions): Middleware[] {
  const { introspect, addresses, origins, onError, refusalPage, version } = options;
  const hosts = new Set([addresses.base, addresses.mcp, addresses.short].map((url) => new URL(url).host));
  const links = createLinks({
    store: options.links,
    cursors: createCursors(options.cursorSecret),
    ownHosts: hosts,
    ownWords: new Set(ownWords(addresses)),
  });
  const showOrganization = createShowOrganization(options.organizations, options.links);
  const shortUrl = addresses.short;

  const gateOf = (resource: string) =>
    createGate({ introspect, audiences: [resource, addresses.base], metadataUrl: metadataUrl(resource) });
  const mcp = mcpEndpoint({
    gate: gateOf(addresses.mcp),
    tools: createTools({ links, shortUrl, showOrganization }),
    mcpUrl: addresses.mcp,
    origins,
    version,
    onError,
  });
  const answer = problems({ docsUrl: `${addresses.base}/docs`, onError });
  const v1 = api({ gate: gateOf(addresses.api), links, shortUrl, showOrganization });

  return [
    area(below("/.well-known/"), [resourceMetadata(addresses)]),
    area(of(addresses.api), [answer, allowOrigins(origins), ...v1]),
    area(of(addresses.mcp), [answer, allowOrigins(origins), mcp]),
    area(isShortLink(shortUrl, links), [showRefusals(refusalPage), answer, followLink(links)]),
  ];
}

/** First words of addresses of ours that the settings decide: where short links live they cannot be slugs. */
function ownWords({ mcp, short }: Addresses): string[] {
  const { host, pathname } = new URL(mcp);
  return host === new URL(short).host ? pathname.split("/").slice(1, 2) : [];
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
