import {
  type CompleteRequestParams,
  type CompleteResult,
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import { covers } from "../access/scopes.ts";
import { toProblem } from "../http/problem.ts";
import { toView } from "../links/schema.ts";
import type { LinkService } from "../links/service.ts";
import { LINK_SCOPES, LINK_TEMPLATE } from "./offer.ts";
import type { Prompt } from "./prompts.ts";

/** The context of one HTTP request to MCP. */
export type McpRequest = { caller: AuthenticatedCaller; requestId: string; report(error: unknown): void };

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
  /** Those that can be completed. */
  prompts: readonly Prompt[];
};

const PAGE_TEMPLATE = "linkgate://docs/{+path}";
// In front of the address of a page.
const SCHEME = "linkgate:/";

// MCP, "Completion": a response has at most 100 values.
const VALUES_MAX = 100;
// They change only with a new version of the service, as the tools do.
const PAGES_CACHE = { ttlMs: 60 * 60 * 1000, cacheScope: "public" } as const;
// Others may change a link at any time, and visitors click it.
const LINK_CACHE = { ttlMs: 0, cacheScope: "private" } as const;

/**
 * Registers the resources of a caller, and completion. Only pages are listed: hosts show the whole list for the user to pick from, and
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
  server.server.setRequestHandler("completion/complete", ({ params }) =>
    asProtocolError(request, () => complete(caller, sources, params)),
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

/** Completes slugs, tags and paths of pages. The SDK would state a total, which a bounded search doesn't know. */
async function complete(
  caller: AuthenticatedCaller,
  { links, documentation, prompts }: ResourceSources,
  { ref, argument: { name, value } }: CompleteRequestParams,
): Promise<CompleteResult> {
  const values = await suggest();
  return { completion: { values: values.slice(0, VALUES_MAX), hasMore: values.length > VALUES_MAX } };

  function suggest(): Promise<string[]> | string[] {
    switch (`${completedName(ref, prompts)} ${name}`) {
      case `${LINK_TEMPLATE} slug`:
        return links.suggestSlugs(caller, value, VALUES_MAX + 1);
      case `${PAGE_TEMPLATE} path`:
        return documentation
          .pages()
          .map(({ path }) => path.replace("/docs/", ""))
          .filter((path) => path.startsWith(value));
      case "weekly_report tag":
        return links.suggestTags(caller, value, VALUES_MAX + 1);
      default:
        return [];
    }
  }
}

/** Returns the name of a prompt or the template of a resource. @throws ProtocolError if there is none */
function completedName(ref: CompleteRequestParams["ref"], prompts: readonly Prompt[]): string {
  const isPrompt = ref.type === "ref/prompt";
  const name = isPrompt ? ref.name : ref.uri;
  const known = isPrompt ? prompts.map((prompt) => prompt.name) : [LINK_TEMPLATE, PAGE_TEMPLATE];
  if (known.includes(name)) return name;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Nothing named ${name} can be completed.`);
}

/** Answers what isn't a tool call, whose errors have no result to be in. @throws ProtocolError */
async function asProtocolError<Result>(
  { requestId, report }: McpRequest,
  answer: () => Promise<Result>,
): Promise<Result> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const { status, code, message } = toProblem(error, () => report(error));
    const data = { status, code, request_id: requestId };
    throw new ProtocolError(ProtocolErrorCode.InternalError, message, data);
  }
}
