import {
  type McpServer,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { covers } from "../access/scopes.ts";
import { toView } from "../links/schema.ts";
import type { LinkService } from "../links/service.ts";
import { asProtocolError, type McpRequest } from "./request.ts";
import { LINK_SCOPES, LINK_TEMPLATE } from "./required-scopes.ts";

/** The documentation of the service. A path is the address of a page on the server, such as `/docs/webhooks`. */
export type Documentation = {
  pages(): { path: string; title: string; description: string }[];
  /** Returns the Markdown of a page; undefined if there is none. */
  read(path: string): string | undefined;
};

export type ResourceSources = {
  links: LinkService;
  shortUrl: string;
  documentation: Documentation;
};

export const PAGE_TEMPLATE = "linkgate://docs/{+path}";
// In front of the address of a page.
const SCHEME = "linkgate:/";

// They change only with a new version of the service, as the tools do.
const PAGES_CACHE = { ttlMs: 60 * 60 * 1000, cacheScope: "public" } as const;
// Others may change a link at any time, and visitors click it.
const LINK_CACHE = { ttlMs: 0, cacheScope: "private" } as const;

/**
 * Registers the resources of a caller. Only pages are listed: hosts show the whole list for the user to pick from, and
 * thousands of links, or an arbitrary few of them, would bury the pages. Links are found by completion, or by list_links.
 */
export function registerResources(server: McpServer, request: McpRequest, sources: ResourceSources): void {
  const { links, shortUrl, documentation } = sources;
  const { caller } = request;
  const listPages = () =>
    asProtocolError(request, async () => {
      const pages = documentation.pages();
      return { resources: pages.map(({ path, ...page }) => ({ uri: SCHEME + path, name: path, ...page })) };
    });
  server.registerResource(
    "documentation",
    new ResourceTemplate(PAGE_TEMPLATE, { list: listPages }),
    {
      title: "Documentation",
      description: "A page of the documentation.",
      mimeType: "text/markdown",
      cacheHint: PAGES_CACHE,
    },
    ({ href }) =>
      asProtocolError(request, async () =>
        contentOf(href, "text/markdown", documentation.read(href.slice(SCHEME.length))),
      ),
  );
  if (!covers(caller.scopes, LINK_SCOPES)) return;
  server.registerResource(
    "link",
    new ResourceTemplate(LINK_TEMPLATE, { list: undefined }),
    {
      title: "Link",
      description: "A link by its slug, as get_link returns it.",
      mimeType: "application/json",
      cacheHint: LINK_CACHE,
    },
    ({ href }, { slug }) =>
      asProtocolError(request, async () => {
        const link = await links.findBySlug(caller, String(slug));
        return contentOf(href, "application/json", link && JSON.stringify(toView(link, shortUrl)));
      }),
  );
}

/** @throws ResourceNotFoundError if there is no text */
function contentOf(uri: string, mimeType: string, text: string | undefined): ReadResourceResult {
  if (text === undefined) throw new ResourceNotFoundError(uri);
  return { contents: [{ uri, mimeType, text }] };
}
