import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/events/delivered-events.ts";
import { tagged } from "../../resources/http/etag.ts";
import type { Resources } from "../../resources/index.ts";
import { lazy } from "../../resources/lazy.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { errorPages } from "./errors.ts";
import { type DocsPage, listFiles, readGuides } from "./guides.ts";
import { managementPages } from "./management-reference.ts";
import { docsPage, listed } from "./page.ts";
import { referencePages } from "./reference.ts";

/** A page, which is rendered once, on its first request. */
export type Article = DocsPage & { html: () => ReturnType<typeof tagged> };

export type Library = ReturnType<typeof createDocumentation>;

type Options = {
  urls: PublicUrls;
  /** Called on first use, so that what is documented may itself use the documentation. */
  describe(): Pick<Resources, "document" | "tools">;
  /** Describes the management API, on servers that have it. */
  describeManagement?(): OpenApiDocument;
};

/** Reads the guides and describes the API on first use, because that takes longer than the rest of the startup. */
export function createDocumentation({ urls, describe, describeManagement }: Options) {
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
