import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { respondWithTagged, tagged } from "../../resources/http/etag.ts";
import { isAt } from "../../resources/http/routing.ts";
import { lazy } from "../../resources/lazy.ts";
import type { Library } from "./documentation.ts";
import { type DocsPage, START } from "./guides.ts";
import { renderMarkdown } from "./markdown.ts";
import { type Article, docsPage, searchPage } from "./page.ts";
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
const TYPES: Record<string, string> = { png: "image/png", svg: "image/svg+xml", tgz: "application/gzip" };

/** Where `npm install` gets the TypeScript client. */
export const CLIENT_PATH = "/client.tgz";
// It's missing where dependencies were installed without those for development.
const CLIENT_PACKAGE = new URL("../../client/client.tgz", import.meta.url);

/** In files and examples, for the client ID of the organization. */
const HAS_CLIENT_ID = /lgc_…|\$\{CLIENT_ID(?::\?[^${}]*)?\}|\$CLIENT_ID\b/;
const CLIENT_ID = new RegExp(HAS_CLIENT_ID, "g");

/** Serves `/docs`, the pages and files below it, `/llms.txt` and the TypeScript client. Each page is rendered once, on its first request. */
export function docs({ urls, documentation, findReader }: Options): Middleware {
  const articles = createCache((page) => ({
    page,
    rendered: renderMarkdown(page.markdown),
    examples: page.examples === undefined ? undefined : renderMarkdown(page.examples, "example-"),
  }));
  const texts = createCache((page) => tagged(docsPage(documentation.all(), articles(page))));
  const index = lazy(() => buildIndex(documentation.all(), (page) => articles(page).rendered.sections));
  const serializedIndex = lazy(async () => tagged(JSON.stringify(await index())));
  const summary = lazy(() => tagged(llmsText(documentation, urls.base)));
  const isSummary = isAt(`${urls.base}/llms.txt`);
  const clientPackage = existsSync(CLIENT_PACKAGE) ? CLIENT_PACKAGE : undefined;

  async function respondWithPage(ctx: Context, page: DocsPage): Promise<void> {
    ctx.vary("Accept");
    if (ctx.accepts("text/html", "text/markdown") === "text/markdown") return respondWithMarkdown(ctx, page);
    if (findReader) ctx.vary("Cookie");
    const reader = await findReader?.(ctx);
    if (!reader) return respondWithTagged(ctx, texts(page), "html");
    // The response may renew the cookie of the session.
    ctx.set("Cache-Control", "private, no-store");
    ctx.type = "html";
    ctx.body = pageOf(reader, articles(page));
  }

  function pageOf({ client }: Reader, article: Article): string {
    const { page } = article;
    if (!client || !HAS_CLIENT_ID.test(page.markdown)) return texts(page).text;
    const note = `Examples use the client ID of ${client.organization}.`;
    return docsPage(documentation.all(), article, note).replaceAll(CLIENT_ID, client.clientId);
  }

  function respondWithMarkdown(ctx: Context, page: DocsPage): void {
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

/** Remembers what is created for a page. */
function createCache<Value>(create: (page: DocsPage) => Value): (page: DocsPage) => Value {
  const created = new Map<string, Value>();
  return (page) => {
    const value = created.get(page.path) ?? create(page);
    created.set(page.path, value);
    return value;
  };
}

/** Lists the pages for agents, as https://llmstxt.org describes. */
function llmsText(documentation: Library, base: string): string {
  const listed = documentation.all().filter(({ section }) => section !== undefined);
  const sections = [...Map.groupBy(listed, ({ section }) => section)].map(
    ([section, pages]) =>
      `## ${section}\n\n${pages.map(({ path, title, description }) => `- [${title}](${base}${path}.md): ${description}`).join("\n")}\n`,
  );
  return `# linkgate

> Link management for organizations: a REST API, an MCP endpoint, and the OAuth 2.0 server that protects both.

Each page is also available as HTML, without \`.md\`. The API is described as OpenAPI 3.1 at ${base}/v1/openapi.json, and each error code at ${base}/docs/errors/<code>.md.

${sections.join("\n")}`;
}
