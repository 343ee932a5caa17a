import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/events/delivered-events.ts";
import { respondWithTagged, tagged } from "../../resources/http/etag.ts";
import { isAt } from "../../resources/http/routing.ts";
import type { Resources } from "../../resources/index.ts";
import { lazy } from "../../resources/lazy.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { html } from "../ui/html.ts";
import { errorPages } from "./errors.ts";
import { type DocsPage, listFiles, readGuides, START } from "./guides.ts";
import { managementPages } from "./management-reference.ts";
import { docsPage, listed, searchPage } from "./page.ts";
import { referencePages } from "./reference.ts";
import { find } from "./search.js";
import { buildIndex } from "./search-index.ts";

/** A signed-in user, with the client that the examples have. */
export type Reader = { client: { clientId: string; organization: string } | undefined };

type Options = {
  urls: PublicUrls;
  documentation: Library;
  /** Returns undefined for visitors; absent on servers without sign-in. */
  findReader?: ((ctx: Context) => Promise<Reader | undefined>) | undefined;
};

const MARKDOWN = "text/markdown; charset=utf-8";
const QUERY_MAX = 100;
// Other files are examples of configurations and scripts.
const TYPES: Record<string, string> = { webp: "image/webp", svg: "image/svg+xml", tgz: "application/gzip" };

/** Where `npm install` gets the TypeScript client. */
export const CLIENT_PATH = "/client.tgz";
// It's missing where dependencies were installed without those for development.
const CLIENT_PACKAGE = new URL("../../client/client.tgz", import.meta.url);

/** In files and examples, for the client ID of the organization. */
const HAS_CLIENT_ID = /lgc_…|\$\{CLIENT_ID(?::\?[^${}]*)?\}|\$CLIENT_ID\b/;
const CLIENT_ID = new RegExp(HAS_CLIENT_ID, "g");

/** Serves `/docs`, the pages and files below it, `/llms.txt` and the TypeScript client. */
export function docs({ urls, documentation, findReader }: Options): Middleware {
  const index = lazy(() => buildIndex(documentation.all()));
  const serializedIndex = lazy(async () => tagged(JSON.stringify(await index())));
  const summary = lazy(() => tagged(llmsText(documentation, urls.base)));
  const isSummary = isAt(`${urls.base}/llms.txt`);
  const clientPackage = existsSync(CLIENT_PACKAGE) ? CLIENT_PACKAGE : undefined;

  async function respondWithPage(ctx: Context, page: Article): Promise<void> {
    ctx.vary("Accept");
    if (ctx.accepts("text/html", "text/markdown") === "text/markdown") return respondWithMarkdown(ctx, page);
    if (findReader) ctx.vary("Cookie");
    const reader = await findReader?.(ctx);
    if (!reader) return respondWithTagged(ctx, page.html(), "html");
    // The response may renew the cookie of the session.
    ctx.set("Cache-Control", "private, no-store");
    ctx.type = "html";
    // It may be compressed: it has no secret, not even a CSRF token.
    ctx.state.isMasked = true;
    ctx.body = pageOf(reader, page);
  }

  function respondWithMarkdown(ctx: Context, page: Article): void {
    respondWithTagged(ctx, tagged(documentation.read(page.path) ?? ""), MARKDOWN);
  }

  return async function serveDocs(ctx, next) {
    const { path } = ctx;
    if (path === "/openapi.json") return redirectToDocument(ctx);
    if (isSummary(ctx)) return respondWithTagged(ctx, summary(), "text/plain; charset=utf-8");
    if (path === "/docs/search") return respondWithResults(ctx);
    if (path === "/docs/search.json") return respondWithTagged(ctx, await serializedIndex(), "json");
    const page = documentation.find(path);
    if (page) return respondWithPage(ctx, page);
    const source =
      path.endsWith(".md") && documentation.find(path === "/docs/README.md" ? START : path.slice(0, -3));
    if (source) return respondWithMarkdown(ctx, source);
    if (path.endsWith("/") && documentation.find(path.slice(0, -1))) {
      ctx.status = 308;
      return ctx.redirect(path.slice(0, -1) + ctx.search);
    }
    const file =
      path === CLIENT_PATH ? clientPackage : path.endsWith(".md") ? undefined : documentation.file(path);
    if (!file) return next();
    ctx.set("Cache-Control", "public, max-age=3600");
    ctx.type = TYPES[path.split(".").at(-1) as string] ?? "text/plain; charset=utf-8";
    ctx.body = await readFile(file);
  };

  async function respondWithResults(ctx: Context): Promise<void> {
    const query = String(ctx.query.q ?? "")
      .slice(0, QUERY_MAX)
      .trim();
    const results = query === "" ? [] : find(await index(), query);
    respondWithTagged(ctx, tagged(searchPage(documentation.all(), query, results)), "html");
  }
}

/** Programs look for the document here, too, also from pages of other origins. */
function redirectToDocument(ctx: Context): void {
  ctx.set("Access-Control-Allow-Origin", "*");
  ctx.status = 308;
  ctx.redirect("/v1/openapi.json");
}

function pageOf({ client }: Reader, page: Article): string {
  const { text } = page.html();
  if (!client || !HAS_CLIENT_ID.test(page.markdown)) return text;
  const note = html`<p class="hint">Examples use the client ID of ${client.organization}.</p>`;
  return text.replaceAll(CLIENT_ID, client.clientId).replace("<article", () => `${note}\n<article`);
}

/** Lists the pages for agents, as https://llmstxt.org describes. */
function llmsText(documentation: Library, base: string): string {
  const sections = [...Map.groupBy(listed(documentation.all()), ({ section }) => section)].map(
    ([section, pages]) =>
      `## ${section}\n\n${pages.map(({ path, title, description }) => `- [${title}](${base}${path}.md): ${description}`).join("\n")}\n`,
  );
  return `# linkgate

> Link management for organizations: a REST API, an MCP endpoint, and the OAuth 2.0 server that protects both.

Each page is also available as HTML, without \`.md\`. The API is described as OpenAPI 3.1 at ${base}/v1/openapi.json, and each error code at ${base}/docs/errors/<code>.md.

${sections.join("\n")}`;
}

/** A page, which is rendered once, on its first request. */
type Article = DocsPage & { html: () => ReturnType<typeof tagged> };

type Library = ReturnType<typeof createDocumentation>;

type Sources = {
  urls: PublicUrls;
  /** Called on first use, so that what is documented may itself use the documentation. */
  describe(): Pick<Resources, "document" | "tools">;
  /** Describes the management API, on servers that have it. */
  describeManagement?(): OpenApiDocument;
};

/** Reads the guides and describes the API on first use, because that takes longer than the rest of the startup. */
export function createDocumentation({ urls, describe, describeManagement }: Sources) {
  const { base } = urls;
  const files = lazy(listFiles);
  const byPath = lazy(() => {
    const { document, tools } = describe();
    const management = describeManagement?.();
    const source = { base, document: document(), management, tools };
    const pages = [
      ...readGuides(files(), urls),
      ...referencePages({ ...source, events: WEBHOOK_EVENT_SCHEMAS }),
      ...(management ? managementPages(management, base) : []),
      ...errorPages(source),
    ];
    const toArticle = (page: DocsPage): Article => ({
      ...page,
      html: lazy(() => tagged(docsPage(pages, page))),
    });
    return new Map(pages.map((page) => [page.path, toArticle(page)]));
  });
  const all = () => [...byPath().values()];
  return {
    all,
    find: (path: string) => byPath().get(path),
    /** Returns the file at an address, such as that of an image. */
    file: (path: string) => files().get(path),
    pages: () => listed(all()).map(({ path, title, description }) => ({ path, title, description })),
    /** Returns the Markdown of a page, with absolute links. */
    read(path: string) {
      const { markdown, examples } = byPath().get(path) ?? {};
      return markdown && [markdown, examples].filter(Boolean).join("\n").replaceAll("](/", `](${base}/`);
    },
  };
}
